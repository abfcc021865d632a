import type { PgClient, PgPool } from '../store/postgres/pg-pool.js';

/** Runs `work` in a transaction on a connection of the pool: commits if it resolves, rolls back if it rejects. */
export async function poolTransaction(
  pool: PgPool,
  work: (client: PgClient) => Promise<void>,
): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    await work(client);
    await client.query('COMMIT');
  } catch (error) {
    await rollBack(client);
    throw error;
  }
  client.release();
}

async function rollBack(client: PgClient): Promise<void> {
  try {
    await client.query('ROLLBACK');
    client.release();
  } catch {
    // Whatever state the connection is in, the next user must not inherit it.
    client.release(true);
  }
}
