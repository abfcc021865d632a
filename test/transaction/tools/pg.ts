import pg from 'pg';
import type { OutboxTransaction, PgTransaction } from '../../../src/index.js';
import type { PostgresMajor } from '../../../tools/postgres-cluster.js';
import type { OpenTool, Tool } from './tool.js';

const WHAT_TO_PASS = 'pass the pg client on which you ran BEGIN';

export function pgClient(major: PostgresMajor): Tool {
  return {
    name: `a pg client, PostgreSQL ${major}`,
    major,
    whatToPass: WHAT_TO_PASS,
    tellsItsEnd: true,
    open: async ({ connectionString }) =>
      open(new pg.Pool({ connectionString }), (client) => client),
  };
}

/** Before 8.17, pg did not know whether a transaction is open. */
export const olderPgClient: Tool = {
  name: 'a pg client older than 8.17',
  whatToPass: WHAT_TO_PASS,
  tellsItsEnd: false,
  open: async ({ connectionString }) =>
    open(new pg.Pool({ connectionString }), (client) => ({
      query: (text, values) => client.query(text, values),
    })),
};

function open(pool: pg.Pool, handedIn: (client: pg.PoolClient) => PgTransaction): OpenTool {
  const query = (tx: OutboxTransaction, text: string, values: unknown[] = []) =>
    (tx as PgTransaction).query(text, values);
  return {
    async transaction(work) {
      const client = await pool.connect();
      try {
        await client.query('BEGIN');
        const result = await work(handedIn(client));
        await client.query('COMMIT');
        return result;
      } catch (error) {
        await client.query('ROLLBACK');
        throw error;
      } finally {
        client.release();
      }
    },
    async nested(tx, work) {
      await query(tx, 'SAVEPOINT nested');
      try {
        const result = await work(tx);
        await query(tx, 'RELEASE SAVEPOINT nested');
        return result;
      } catch (error) {
        await query(tx, 'ROLLBACK TO SAVEPOINT nested');
        throw error;
      }
    },
    insertQuote: (tx, id) => query(tx, 'INSERT INTO quotes VALUES ($1)', [id]),
    fail: (tx) => query(tx, 'SELECT 1/0'),
    mistakes: [
      ['the pool', () => pool, 'tx is a pool, whose every query may take another connection'],
      [
        'a client that was never connected',
        () => new pg.Client(),
        'tx has no open transaction (none was begun, or it has ended)',
      ],
    ],
    close: () => pool.end(),
  };
}
