import { type ControlledTransaction, Kysely, PostgresDialect, sql, type Transaction } from 'kysely';
import pg from 'pg';
import type { OpenTool, Tool } from './tool.js';

interface Tables {
  quotes: { id: number };
}

const WHAT_TO_PASS =
  "pass the trx that Kysely's db.transaction().execute(async (trx) => …) hands you";

export const kysely: Tool = {
  name: 'Kysely',
  whatToPass: WHAT_TO_PASS,
  tellsItsEnd: false,
  async open({ connectionString }) {
    const db = connect(connectionString);
    return {
      ...means(db),
      transaction: (work) => db.transaction().execute((trx) => work(trx)),
      // A transaction of this kind has no nested ones: its users write the savepoint themselves.
      async nested(tx, work) {
        const trx = tx as Transaction<Tables>;
        await sql`SAVEPOINT nested`.execute(trx);
        try {
          const result = await work(trx);
          await sql`RELEASE SAVEPOINT nested`.execute(trx);
          return result;
        } catch (error) {
          await sql`ROLLBACK TO SAVEPOINT nested`.execute(trx);
          throw error;
        }
      },
    };
  },
};

export const kyselyControlled: Tool = {
  name: 'Kysely, a controlled transaction',
  whatToPass: WHAT_TO_PASS,
  tellsItsEnd: false,
  async open({ connectionString }) {
    const db = connect(connectionString);
    return {
      ...means(db),
      async transaction(work) {
        const trx = await db.startTransaction().execute();
        try {
          const result = await work(trx);
          await trx.commit().execute();
          return result;
        } catch (error) {
          await trx.rollback().execute();
          throw error;
        }
      },
      async nested(tx, work) {
        const nested = await (tx as ControlledTransaction<Tables>).savepoint('nested').execute();
        try {
          const result = await work(nested);
          await nested.releaseSavepoint('nested').execute();
          return result;
        } catch (error) {
          await nested.rollbackToSavepoint('nested').execute();
          throw error;
        }
      },
    };
  },
};

function connect(connectionString: string): Kysely<Tables> {
  return new Kysely<Tables>({
    dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString }) }),
  });
}

function means(db: Kysely<Tables>): Omit<OpenTool, 'transaction' | 'nested'> {
  return {
    insertQuote: (tx, id) =>
      (tx as Transaction<Tables>).insertInto('quotes').values({ id }).execute(),
    fail: (tx) => sql`SELECT 1/0`.execute(tx as Transaction<Tables>),
    mistakes: [
      ['db itself', () => db, 'tx is Kysely itself, whose every query may take another connection'],
    ],
    close: () => db.destroy(),
  };
}
