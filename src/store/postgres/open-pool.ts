import pg from 'pg';

/** How long the store waits for a connection before it gives up, in milliseconds: every wait ends. */
const CONNECT_TIMEOUT_MS = 10_000;

/**
 * The store's own pool.
 * @param onError an idle connection broke: the pool has dropped it and goes on
 */
export function openPool(connectionString: string, onError: (error: Error) => void): pg.Pool {
  const pool = new pg.Pool({
    connectionString,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    application_name: 'nestjs-outbox-relay',
  });
  // Without a listener, node-postgres ends the process when the server drops an idle connection.
  pool.on('error', onError);
  return pool;
}
