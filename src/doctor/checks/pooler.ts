import { isTransactionPooler } from '../../store/postgres/transaction-pooler.js';
import { databaseCheck } from '../check.js';

const PROBES = 4;

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
async function sessionsChange({
  pool,
}: {
  pool: { connect(): Promise<ProbeClient> };
}): Promise<boolean> {
  const first = await pool.connect();
  let failed = true;
  try {
    const second = await pool.connect();
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
  } finally {
    first.release(failed);
  }
}

interface ProbeClient {
  query(text: string): Promise<{ rows: unknown[] }>;
  release(destroy?: boolean): void;
}

async function backendOf(client: ProbeClient): Promise<unknown> {
  const { rows } = await client.query('SELECT pg_backend_pid()::text AS pid');
  return (rows[0] as { pid: unknown }).pid;
}
