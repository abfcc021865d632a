import { invalid } from '../event/outbox-error.js';
import { drizzle, type DrizzleTransaction } from './drizzle.js';
import { knex, type KnexTransaction } from './knex.js';
import { kysely, type KyselyTransaction } from './kysely.js';
import { mikroOrm, type MikroOrmTransaction } from './mikro-orm.js';
import { pg, type PgTransaction } from './pg.js';
import { postgresJs, type PostgresJsTransaction } from './postgres-js.js';
import { prisma, type PrismaTransaction } from './prisma.js';
import type { OpenTransaction, Shape } from './transaction-tool.js';
import { typeorm, type TypeOrmTransaction } from './typeorm.js';

/** What `tx` may be: the open transaction of a tool this library knows, as the tool hands it to you. */
export type OutboxTransaction =
  | PgTransaction
  | PostgresJsTransaction
  | KnexTransaction
  | KyselyTransaction
  | DrizzleTransaction
  | PrismaTransaction
  | TypeOrmTransaction
  | MikroOrmTransaction;

// pg comes last: many of the others have a query method too.
const TOOLS = [prisma, drizzle, kysely, knex, postgresJs, mikroOrm, typeorm, pg];

/**
 * The caller's open transaction, ready to run SQL in. Never another connection, never a guess.
 * @throws OutboxError `INVALID_ARGUMENT` that says what to pass
 */
export async function openTransaction(tx: OutboxTransaction): Promise<OpenTransaction> {
  const candidate = tx as unknown;
  const isObject =
    (typeof candidate === 'object' && candidate !== null) || typeof candidate === 'function';
  const tool = isObject ? TOOLS.find((each) => each.recognises(candidate as Shape)) : undefined;
  if (tool !== undefined) return tool.open(candidate as Shape);
  throw invalid(
    `tx is ${kindOf(candidate)}, not an open transaction of a tool this library knows: pass ${pg.whatToPass}, or the ` +
      'transaction object of postgres.js, Knex, Kysely, Drizzle, Prisma, TypeORM or MikroORM (docs/transactions.md)',
  );
}

function kindOf(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'function') return 'a function';
  if (typeof value !== 'object' || value === null) return String(value);
  const { constructor } = value as { constructor?: { name?: unknown } };
  const name = constructor?.name;
  return typeof name === 'string' && name !== 'Object' ? `an object of class ${name}` : 'an object';
}
