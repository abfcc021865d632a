import type { PgClient, PgPool } from '../store/postgres/pg-pool.js';
import {
  SCHEMA_VERSION,
  databaseIsNewer,
  readSchemaVersion,
} from '../store/postgres/schema-version.js';
import type { SqlNames } from '../store/postgres/sql-names.js';
import { readMigrations } from './migration-files.js';

/** "outbox" as a number: any constant will do, as long as it stays the same. */
const ADVISORY_LOCK = 0x6f7574626f78;

export interface MigrationResult {
  /** Version before and after. */
  readonly from: number;
  readonly to: number;
  /** Files that were run, e.g. `['001_outbox_events.sql']`; empty if there was nothing to do. */
  readonly applied: readonly string[];
}

/**
 * Brings the database to the version of this code, in one transaction: all of it, or nothing. Safe from any number
 * of processes at once (the others wait, then find nothing to do), and takes no lock if there is nothing to do.
 *
 * @throws OutboxError `SCHEMA_MISMATCH` if the database is newer than the code
 */
export async function migrate(pool: PgPool, names: SqlNames): Promise<MigrationResult> {
  const version = await readSchemaVersion(pool, names);
  if (version === SCHEMA_VERSION) return { from: version, to: version, applied: [] };
  if (version > SCHEMA_VERSION) throw databaseIsNewer(version, names);

  const client = await pool.connect();
  try {
    const result = await inTransaction(client, names);
    client.release();
    return result;
  } catch (error) {
    // Whatever state the connection is in, the next user must not inherit it.
    client.release(true);
    throw error;
  }
}

async function inTransaction(client: PgClient, names: SqlNames): Promise<MigrationResult> {
  await client.query('BEGIN');
  // IF NOT EXISTS is not safe against a concurrent creator. A transaction's lock, not a session's: it holds behind
  // a pooler in transaction mode too, and cannot be left behind.
  await client.query({ text: 'SELECT pg_advisory_xact_lock($1)', values: [ADVISORY_LOCK] });
  const from = await readSchemaVersion(client, names);
  if (from > SCHEMA_VERSION) throw databaseIsNewer(from, names);

  const pending = (await readMigrations(names)).filter(({ version }) => version > from);
  for (const migration of pending) await client.query(migration.sql);
  await client.query('COMMIT');
  return { from, to: SCHEMA_VERSION, applied: pending.map(({ file }) => file) };
}
