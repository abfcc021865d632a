import { execFile } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { readMarkdown, ROOT, type CodeBlock } from './markdown.js';

/** What a block that is no file of its own finds: things a reader knows from the text around it. */
const CONTEXT = `
type QuoteRequest = { id: string; projectName: string };
declare const repository: { save(quoteRequest: object): Promise<QuoteRequest> };
declare const eventEmitter: import('@nestjs/event-emitter').EventEmitter2;
declare const outbox: import('nestjs-outbox-relay').OutboxService;
declare const pool: import('pg').Pool;
declare const client: import('pg').PoolClient;
declare const quoteRequest: object;
declare const quoteRequests: QuoteRequest[];
declare const quoteRequestId: string;
declare const projectName: string;
declare const userId: string;
declare function findSupplierPhone(quoteRequestId: string): Promise<string | null>;
declare function sendAlimtalk(phone: string): Promise<void>;
/** As much of the tools' types as the examples touch. */
interface EntityManager { query(text: string, parameters?: unknown[]): Promise<any> }
declare const dataSource: { transaction<T>(work: (manager: EntityManager) => Promise<T>): Promise<T> };
interface KyselyTransaction { executeQuery(query: object): Promise<{ rows: unknown[] }> }
declare const kysely: {
  transaction(): { execute<T>(work: (trx: KyselyTransaction) => Promise<T>): Promise<T> };
};
declare const CompiledQuery: { raw(text: string, parameters?: unknown[]): object };
`;

/** Names that a block may use without importing them: they were imported in one before. */
const IMPORTS: Record<string, string> = {
  Injectable: '@nestjs/common',
  Module: '@nestjs/common',
  Controller: '@nestjs/common',
  Get: '@nestjs/common',
  ServiceUnavailableException: '@nestjs/common',
  Test: '@nestjs/testing',
  EventEmitterModule: '@nestjs/event-emitter',
  OnEvent: '@nestjs/event-emitter',
  OutboxModule: 'nestjs-outbox-relay',
  OutboxService: 'nestjs-outbox-relay',
  'type Delivered': 'nestjs-outbox-relay',
  PgBoss: 'pg-boss',
  NotificationListener: './app.module.js',
};

const TSCONFIG = {
  compilerOptions: {
    module: 'nodenext',
    target: 'es2023',
    types: ['node'],
    rootDir: '.',
    outDir: 'out',
    strict: true,
    skipLibCheck: true,
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
  },
  include: ['*.ts'],
};

export interface SnippetProject {
  /** How many blocks there were. */
  count: number;
  /** One line each, with the line of the document. */
  errors: string[];
}

/**
 * Compiles every TypeScript block of a document, strictly, against the library as it is built: below build/, the
 * library's own name leads through its exports map to dist, as it does for a user.
 * @param place a folder of the caller's own in build/docs; what is compiled goes to `out` in it
 */
export async function compileSnippets(file: string, place: string): Promise<SnippetProject> {
  const folder = path.join(ROOT, 'build', 'docs', place);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });

  const blocks = readMarkdown(file).blocks.filter(({ lang }) => lang === 'ts');
  const places = new Map<string, { block: CodeBlock; linesBefore: number }>();
  for (const block of blocks) {
    const [, ownName] = /^\/\/ ([\w.-]+\.ts)\n/.exec(block.code) ?? [];
    const name = ownName ?? `line-${block.line}.ts`;
    const preamble = ownName === undefined ? missingImports(block.code) : '';
    writeFileSync(path.join(folder, name), preamble + block.code);
    places.set(name, { block, linesBefore: preamble.split('\n').length - 1 });
  }
  writeFileSync(path.join(folder, 'context.d.ts'), CONTEXT);
  writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG));

  const errors = (await tsc(folder)).map((error) => inDocument(error, file, places));
  return { count: blocks.length, errors };
}

function missingImports(code: string): string {
  const imported = [...code.matchAll(/^import (?:type )?\{?([^}]*)\}? from/gm)].join(' ');
  const lines = Object.entries(IMPORTS).flatMap(([name, module]) => {
    const identifier = name.replace('type ', '');
    const isUsed = new RegExp(`\\b${identifier}\\b`).test(code);
    const isThere =
      new RegExp(`\\b${identifier}\\b`).test(imported) ||
      new RegExp(`class ${identifier}\\b`).test(code);
    return isUsed && !isThere ? [`import { ${name} } from '${module}';\n`] : [];
  });
  return `${lines.join('')}export {};\n`;
}

async function tsc(folder: string): Promise<string[]> {
  const compiler = path.join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  try {
    await promisify(execFile)(process.execPath, [compiler, '-p', folder, '--pretty', 'false'], {
      cwd: folder,
    });
    return [];
  } catch (failure) {
    const { stdout = '', stderr = '' } = failure as { stdout?: string; stderr?: string };
    return `${stdout}${stderr}`.split('\n').filter((line) => line.includes('error'));
  }
}

function inDocument(
  error: string,
  file: string,
  places: Map<string, { block: CodeBlock; linesBefore: number }>,
): string {
  return error.replace(/^([\w.-]+\.ts)\((\d+),(\d+)\)/, (whole, name: string, line: string) => {
    const place = places.get(name);
    return place ? `${file}:${place.block.line + Number(line) - 1 - place.linesBefore}` : whole;
  });
}
