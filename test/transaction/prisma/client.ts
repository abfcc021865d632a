import { PrismaPg } from '@prisma/adapter-pg';
import type { ITXClientDenyList } from '@prisma/client/runtime/client';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';

/** What the tests use of the client that Prisma generates. */
export interface PrismaClient {
  $connect(): Promise<void>;
  $disconnect(): Promise<void>;
  $on(event: never, callback: never): unknown;
  $extends(extension: object): unknown;
  $transaction<Result>(work: (tx: PrismaTransactionClient) => Promise<Result>): Promise<Result>;
  $queryRawUnsafe<Result = unknown>(text: string, ...values: unknown[]): Promise<Result>;
  readonly quote: { create(args: { data: { id: number } }): Promise<unknown> };
}

export type PrismaTransactionClient = Omit<PrismaClient, ITXClientDenyList>;

/** A client with the pg driver adapter. */
export async function prismaClient(connectionString: string): Promise<PrismaClient> {
  const { PrismaClient: Client } = (await import(path.join(generated(), 'client.ts'))) as {
    PrismaClient: new (options: object) => PrismaClient;
  };
  return new Client({ adapter: new PrismaPg({ connectionString }) });
}

/** Generates the client unless it is there already. @returns the folder it lies in */
function generated(): string {
  const schema = readFileSync('test/transaction/prisma/schema.prisma', 'utf8');
  const prisma = readFileSync('node_modules/prisma/package.json', 'utf8');
  const fingerprint = createHash('sha256').update(schema).update(prisma).digest('hex').slice(0, 16);
  const folder = path.resolve('build', `prisma-${fingerprint}`);
  if (existsSync(folder)) return path.join(folder, 'client');

  // Beside its place and then moved there: another worker may be doing the same.
  mkdirSync('build', { recursive: true });
  const temporary = mkdtempSync(path.resolve('build', 'prisma-tmp-'));
  writeFileSync(path.join(temporary, 'schema.prisma'), schema);
  generate(path.join(temporary, 'schema.prisma'));
  try {
    renameSync(temporary, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error;
    rmSync(temporary, { recursive: true });
  }
  return path.join(folder, 'client');
}

function generate(schema: string): void {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['node_modules/prisma/build/index.js', 'generate', '--schema', schema],
    {
      env: {
        ...process.env,
        // Generating needs no schema engine, but Prisma downloads one unless it is told where it is.
        PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
        PRISMA_HIDE_UPDATE_MESSAGE: '1',
        CHECKPOINT_DISABLE: '1',
        NODE_OPTIONS: '',
      },
      encoding: 'utf8',
    },
  );
  if (status !== 0) throw new Error(`prisma generate failed.\n${stdout}${stderr}`);
}
