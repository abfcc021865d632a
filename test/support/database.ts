import { randomBytes } from 'node:crypto';
import pg from 'pg';
import type { PostgresMajor } from '../../tools/postgres-cluster.js';
import { opened } from './leaks.js';
import { until } from './until.js';

export interface TestDatabase extends AsyncDisposable {
  readonly name: string;
  readonly major: PostgresMajor;
  /** As the superuser. */
  readonly connectionString: string;
  readonly pool: pg.Pool;
  /** Answers the rows. */
  query<Row extends pg.QueryResultRow = pg.QueryResultRow>(
    text: string,
    values?: unknown[],
  ): Promise<Row[]>;
  /** Cuts every connection to it, as a failover does. Answers how many there were. */
  terminateBackends(): Promise<number>;
  /**
   * Ends the pool and drops the database. Throws, after dropping it all the same, if somebody still
   * holds a connection: that is a leak in what was tested. (A session whose client was killed in
   * the middle of a statement counts too: `terminateBackends()` first.)
   */
  drop(): Promise<void>;
}

const CLOSED_WITHIN_MS = 3_000;

/** A fresh, empty database of its own. It must be dropped before the test file ends. */
export async function createDatabase(major: PostgresMajor = 18): Promise<TestDatabase> {
  const name = `outbox_${process.pid}_${randomBytes(6).toString('hex')}`;
  await administer(major, `CREATE DATABASE ${name}`);

  const url = new URL(adminConnectionString(major));
  url.pathname = name;
  const pool = new pg.Pool({ connectionString: url.href });
  // An idle connection that the server cuts is an 'error' event, fatal if nobody listens.
  pool.on('error', () => {});
  let dropped = false;
  const closed = opened({ scope: 'file', describe: () => `database ${name}`, end: () => drop() });

  async function drop(): Promise<void> {
    if (dropped) return;
    dropped = true;
    closed();
    // Not awaited before the DROP: it waits for clients which a leak never gives back.
    const ended = pool.end();
    const leaked = await remainingBackends(major, name);
    await administer(major, `DROP DATABASE ${name} WITH (FORCE)`);
    if (leaked.length === 0) return ended;
    throw new Error(
      `${leaked.length} connection(s) to ${name} were still open when it was dropped:\n${leaked.join('\n')}`,
    );
  }

  return {
    name,
    major,
    connectionString: url.href,
    pool,
    async query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]) {
      return (await pool.query<Row>(text, values)).rows;
    },
    async terminateBackends() {
      const rows = await administer(
        major,
        'SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1',
        [name],
      );
      return rows.length;
    },
    drop,
    [Symbol.asyncDispose]: drop,
  };
}

/** Sessions that are still there when every client had time to close: one line each. */
async function remainingBackends(major: PostgresMajor, database: string): Promise<string[]> {
  let sessions: string[] = [];
  const gone = async () => {
    const rows = await administer(
      major,
      `SELECT concat_ws(' ', pid, application_name, state, left(query, 200)) AS session
         FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend'`,
      [database],
    );
    sessions = rows.map((row) => String(row['session']));
    return sessions.length === 0;
  };
  await until(gone, { what: 'all are gone', timeoutMs: CLOSED_WITHIN_MS }).catch(() => {});
  return sessions;
}

async function administer(
  major: PostgresMajor,
  text: string,
  values?: unknown[],
): Promise<pg.QueryResultRow[]> {
  const client = new pg.Client({ connectionString: adminConnectionString(major) });
  await client.connect();
  try {
    return (await client.query(text, values)).rows;
  } finally {
    await client.end();
  }
}

function adminConnectionString(major: PostgresMajor): string {
  const name = `OUTBOX_TEST_PG${major}`;
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run the tests with "npm test".`);
  return value;
}
