import { sql } from 'drizzle-orm';
import { drizzle as onPg, type NodePgDatabase } from 'drizzle-orm/node-postgres';
import { integer, type PgDialect, type PgSession, pgTable } from 'drizzle-orm/pg-core';
import { drizzle as onProxy, PgProxyTransaction } from 'drizzle-orm/pg-proxy';
import { drizzle as onPostgresJs } from 'drizzle-orm/postgres-js';
import pg from 'pg';
import postgres from 'postgres';
import type { PgTransaction } from '../../../src/index.js';
import { pgClient } from './pg.js';
import type { OpenTool, Tool } from './tool.js';

export const quotes = pgTable('quotes', { id: integer() });

/** Of whichever driver: the suite uses what they have in common. */
type Database = Pick<NodePgDatabase, 'insert' | 'execute'> & {
  transaction<Result>(work: (tx: Transaction) => Promise<Result>): Promise<Result>;
};
type Transaction = Database & { rollback(): never };

const WHAT_TO_PASS = "pass the tx that Drizzle's db.transaction(async (tx) => …) hands you";

export const drizzleOnPg: Tool = {
  name: 'Drizzle on pg',
  whatToPass: WHAT_TO_PASS,
  tellsItsEnd: true,
  async open({ connectionString }) {
    const pool = new pg.Pool({ connectionString });
    const db = onPg({ client: pool });
    return { ...means(db), transaction: (work) => db.transaction(work), close: () => pool.end() };
  },
};

export const drizzleOnPostgresJs: Tool = {
  name: 'Drizzle on postgres.js',
  whatToPass: WHAT_TO_PASS,
  tellsItsEnd: false,
  async open({ connectionString }) {
    const client = postgres(connectionString);
    const db = onPostgresJs({ client });
    return {
      ...means(db as unknown as Database),
      transaction: (work) => db.transaction(work),
      close: () => client.end(),
    };
  },
};

/** A driver that is not known here: the statement goes through Drizzle itself. */
export const drizzleOnAnotherDriver: Tool = {
  name: 'Drizzle on another driver',
  whatToPass: WHAT_TO_PASS,
  tellsItsEnd: false,
  async open(database) {
    const below = await pgClient(18).open(database);
    const over = (client: PgTransaction): Transaction => {
      const { dialect, session } = onProxy(async (text, params) => ({
        rows: (await client.query(text, params)).rows,
      })) as unknown as { dialect: PgDialect; session: PgSession };
      return new PgProxyTransaction(dialect, session, undefined) as unknown as Transaction;
    };
    const clients = new WeakMap<object, PgTransaction>();
    return {
      ...means(onProxy(async () => ({ rows: [] })) as unknown as Database),
      transaction: (work) =>
        below.transaction((client) => {
          const tx = over(client as PgTransaction);
          clients.set(tx, client as PgTransaction);
          return work(tx);
        }),
      nested: (tx, work) => below.nested(clients.get(tx) as PgTransaction, () => work(tx)),
      close: () => below.close(),
    };
  },
};

function means(db: Database): Omit<OpenTool, 'transaction' | 'close'> {
  return {
    nested: (tx, work) =>
      (tx as unknown as Transaction).transaction((nested) => work(nested as never)),
    insertQuote: async (tx, id) => (tx as unknown as Transaction).insert(quotes).values({ id }),
    fail: async (tx) => (tx as unknown as Transaction).execute(sql`SELECT 1/0`),
    mistakes: [
      [
        'db itself',
        () => db,
        'tx is a Drizzle database, whose every query may take another connection',
      ],
    ],
  };
}
