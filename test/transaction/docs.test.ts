import { describe, expect, it } from '@jest/globals';
import { parseSync, printSync } from '@swc/core';
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';

/** What the examples find: a reader knows it from the text around them. */
const CONTEXT = `
import type { Delivered, OutboxInbox, OutboxService } from 'nestjs-outbox-relay';

declare module 'nestjs-outbox-relay' {
  interface OutboxEventMap {
    'quote_request.created': { quoteRequestId: string; supplierPhone?: string; projectName?: string };
    'quote_request.accepted': { quoteRequestId: string; amount: number };
    'record.bulk.upserted': { tenantId: string; recordIds: string[] };
    'record.bulk.upserted.analytics': { tenantId: string; recordIds: string[] };
  }
}

declare global {
  const outbox: OutboxService;
  const inbox: OutboxInbox;
  const quoteRequestId: string;
  const event: Delivered<'quote_request.accepted'>;
  const pool: import('pg').Pool;
  const sql: import('postgres').Sql;
  const knex: import('knex').Knex;
  interface AlimtalkClient { send(message: object): Promise<void> }
  const alimtalk: AlimtalkClient;
  const message: object;
}
`;

/** What only some of them find, by the heading they stand under. */
const UNDER_HEADING: Record<string, string> = {
  Kysely: `declare const db: import('kysely').Kysely<{ quote_requests: { id: string } }>;`,
  Drizzle: `import { pgTable, text } from 'drizzle-orm/pg-core';
declare const db: import('drizzle-orm/node-postgres').NodePgDatabase;
const quoteRequests = pgTable('quote_requests', { id: text() });`,
  Prisma: `interface Tx {
  $queryRawUnsafe<T = unknown>(query: string, ...values: any[]): Promise<T>;
  readonly quoteRequest: { create(args: { data: { id: string } }): Promise<unknown> };
}
declare const prisma: { $transaction<R>(work: (tx: Tx) => Promise<R>): Promise<R> };`,
  TypeORM: `import { type DataSource, EntitySchema } from 'typeorm';
declare const dataSource: DataSource;
const QuoteRequest = new EntitySchema<{ id: string }>({ name: 'q', columns: {} });`,
  MikroORM: `import { type EntityManager, EntitySchema } from '@mikro-orm/postgresql';
declare const em: EntityManager;
const QuoteRequest = new EntitySchema<{ id: string }>({ name: 'q', properties: { id: { type: 'uuid', primary: true } } });`,
  'The current transaction': `import { Injectable } from '@nestjs/common';
import { EntitySchema } from 'typeorm';
import { Transactional, TransactionHost } from '@nestjs-cls/transactional';
import { TransactionalAdapterTypeOrm } from '@nestjs-cls/transactional-adapter-typeorm';
import { OutboxModule, OutboxService } from 'nestjs-outbox-relay';
const QuoteRequest = new EntitySchema<{ id: string }>({ name: 'q', columns: {} });`,
  Once: `import { Injectable } from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import { OutboxInbox, type Delivered } from 'nestjs-outbox-relay';
import { EntitySchema, type DataSource, type EntityManager } from 'typeorm';
declare const dataSource: DataSource;
const LedgerEntry = new EntitySchema<{ quoteRequestId: string }>({ name: 'l', columns: {} });`,
  'Messages to the outside': `import { Injectable } from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import { type Delivered } from 'nestjs-outbox-relay';`,
};
for (const heading of [
  'A gate',
  'Transient or deterministic',
  'What the caller does',
  'A stamp of your own',
  'Large inputs',
  'Listeners that swallow',
  'Slow consumers',
]) {
  UNDER_HEADING[heading] = `import { Injectable } from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import {
  BootstrapPublisher, chunk, GateClosedError, TransientGateError, type Delivered, type Gate,
} from 'nestjs-outbox-relay';
interface ProviderRecord { id: string; name: string }
declare class Provider { fetchRecords(tenantId: string, signal: AbortSignal): Promise<ProviderRecord[]> }
declare class Records {
  upsert(records: ProviderRecord[]): Promise<void>;
  stored(tenantId: string): Promise<ProviderRecord[]>;
}
declare class SearchQueue { addBulk(ids: string[]): Promise<void> }
declare class QuotaExceeded extends Error {}
declare class UnavailableForRepair extends Error { constructor(since: Date, reason: string) }
declare const app: import('@nestjs/common').INestApplicationContext;
declare const publisher: BootstrapPublisher;
declare const gate: Gate<'record.bulk.upserted', ProviderRecord>;
declare const rows: ProviderRecord[];
declare const records: Records;
declare function sync(tenantId: string): Promise<unknown>;
declare const sourceId: string;
declare const sources: {
  find(id: string): Promise<{ syncedAt: Date | null }>;
  update(id: string, change: object): Promise<void>;
};`;
}
UNDER_HEADING['In a transaction of your own'] = UNDER_HEADING['Once']!;

const ROOT = path.resolve(import.meta.dirname, '..', '..');
const DOCUMENTS = ['docs/transactions', 'docs/inbox', 'docs/bootstrap-gate'];

interface Block {
  heading: string;
  code: string;
  line: number;
}

describe.each(DOCUMENTS)('%s', (document) => {
  const english = read(`${document}.md`);
  const korean = read(`${document}.ko.md`);

  it('says the same in Korean: the same code, sections and tables', () => {
    expect(korean.blocks.map(withoutComments)).toEqual(english.blocks.map(withoutComments));
    expect(korean.headings.map(({ level }) => level)).toEqual(
      english.headings.map(({ level }) => level),
    );
    expect(korean.rows).toEqual(english.rows);
  });

  it('shows code that compiles strictly', async () => {
    expect(english.blocks.length).toBeGreaterThan(3);
    expect(await compile(document, english.blocks)).toEqual([]);
  });
});

it.each(['docs/transactions.md', 'docs/transactions.ko.md'])(
  '%s names the versions that the tests run with',
  (file) => {
    const named = [...read(file).text.matchAll(/`(@?[a-z][\w./-]*)` (\d+\.\d+\.\d+)/g)];
    expect(named).toHaveLength(9);
    for (const [, name, version] of named) {
      const manifest = readFileSync(path.join(ROOT, 'node_modules', name!, 'package.json'), 'utf8');
      expect(`${name} ${version}`).toBe(
        `${name} ${(JSON.parse(manifest) as { version: string }).version}`,
      );
    }
  },
);

function read(file: string) {
  const text = readFileSync(path.join(ROOT, file), 'utf8');
  const blocks: Block[] = [];
  const headings: { level: number; text: string }[] = [];
  let rows = 0;
  let block: Block | undefined;
  for (const [index, line] of text.split('\n').entries()) {
    const heading = /^(#+) (.*)$/.exec(line);
    if (line.startsWith('```') && block !== undefined) block = undefined;
    else if (line.startsWith('```')) {
      block = { heading: headings.at(-1)?.text ?? '', code: '', line: index + 2 };
      blocks.push(block);
    } else if (block !== undefined) block.code += `${line}\n`;
    else if (heading !== null) headings.push({ level: heading[1]!.length, text: heading[2]! });
    else if (line.startsWith('|')) rows++;
  }
  return { text, blocks, headings, rows };
}

function withoutComments({ code }: Block): string {
  return printSync(parseSync(code, { syntax: 'typescript', decorators: true, target: 'es2022' }))
    .code;
}

async function compile(document: string, blocks: readonly Block[]): Promise<string[]> {
  const folder = path.join(ROOT, 'build', 'snippets', path.basename(document));
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const { heading, code, line } of blocks) {
    const preamble = UNDER_HEADING[heading] ?? '';
    writeFileSync(path.join(folder, `line-${line}.ts`), `${preamble}\n${code}\nexport {};\n`);
  }
  writeFileSync(path.join(folder, 'context.d.ts'), CONTEXT);
  const config = {
    extends: '../../../tsconfig.check.json',
    compilerOptions: {
      rootDir: '../../..',
      exactOptionalPropertyTypes: false,
      paths: {
        'nestjs-outbox-relay': ['../../../src/index.ts'],
        'nestjs-outbox-relay/testing': ['../../../src/testing.ts'],
      },
    },
    include: ['*.ts'],
    exclude: [],
  };
  writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify(config));
  const compiler = path.join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  try {
    await promisify(execFile)(process.execPath, [compiler, '-p', folder, '--pretty', 'false']);
    return [];
  } catch (failure) {
    return (failure as { stdout: string }).stdout.split('\n').filter((line) => line !== '');
  }
}
