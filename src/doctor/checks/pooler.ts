import { setTimeout as sleep } from 'node:timers/promises';
import type { PgClient, PgPool } from '../../store/postgres/pg-pool.js';
import { isTransactionPooler } from '../../store/postgres/transaction-pooler.js';
import { CannotLook, databaseCheck } from '../check.js';
import type { PatientDatabase } from '../patient.js';

const PROBES = 4;
const SECOND_WITHIN_MS = 2_000;

export const pooler = databaseCheck({
  name: 'pooler',
  group: 'server',
  looksFor: 'a pooler in transaction mode between here and the database',
  why: 'LISTEN does not work there: what another process enqueues waits for the next tick, up to 15 s',
  needs: 'server',
  async examine(database) {
    const byPort =
      database.clientConfig !== undefined && isTransactionPooler(database.clientConfig);
    if (!byPort && !(await sessionsChange(database))) return [];
    return [
      {
        level: 'info',
        what: byPort
          ? 'the connection leads to port 6543, a pooler in transaction mode'
          : 'one connection is served by several sessions: there is a pooler in transaction mode',
        fix: 'give the relay the direct connection, or the pooler’s session mode (Supabase: port 5432), if 15 s are too long',
      },
    ];
  },
});

/** Two connections take turns in transactions: a pooler in transaction mode hands its sessions on between them. */
async function sessionsChange({ pool }: PatientDatabase): Promise<boolean> {
  const first = await pool.connect();
  let failed = true;
  try {
    const second = await connectSoon(pool);
    try {
      const seen = new Set<unknown>();
      for (let probe = 0; probe < PROBES; probe++) {
        seen.add(await backendOf(first));
        // Occupies the session that the first one had, if that was given back.
        await second.query('BEGIN');
        await backendOf(second);
        seen.add(await backendOf(first));
        await second.query('ROLLBACK');
      }
      failed = false;
      return seen.size > 1;
    } finally {
      second.release(failed);
    }
  } catch (error) {
    if (error instanceof CannotLook) failed = false;
    throw error;
  } finally {
    first.release(failed);
  }
}

/** A small pool may have no second one as long as this one has the first. */
async function connectSoon(pool: PgPool): Promise<PgClient> {
  const connecting = pool.connect();
  const timeout = new AbortController();
  const late = sleep(SECOND_WITHIN_MS, undefined, { signal: timeout.signal }).catch(() => {});
  try {
    const client = await Promise.race([connecting, late]);
    if (client !== undefined) return client;
  } finally {
    timeout.abort();
  }
  connecting.then((client) => client.release()).catch(() => {});
  throw new CannotLook('the probe needs two connections of the pool at a time, and there is one');
}

async function backendOf(client: PgClient): Promise<unknown> {
  const { rows } = await client.query('SELECT pg_backend_pid()::text AS pid');
  return (rows[0] as { pid: unknown }).pid;
}
