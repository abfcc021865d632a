import type { PgClient, PgPool } from '../store/postgres/pg-pool.js';
import {
  SCHEMA_VERSION,
  assertVersion,
  readSchemaState,
  type SchemaState,
} from '../store/postgres/schema-version.js';
import type { SqlNames } from '../store/postgres/sql-names.js';
import { readMigrations, type Migration } from './migration-files.js';

/** "outbox" as a number: any constant will do, as long as it stays the same. */
const ADVISORY_LOCK = 0x6f7574626f78;

/** Another migrator, or a long transaction on the table: waited for, but not for ever. */
const LOCK_WITHIN_MS = 30_000;

/** A statement not answered for so long has lost its connection; none of the files needs as much. */
const GIVE_UP_AFTER_MS = 600_000;

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
 * @throws OutboxError `SCHEMA_MISMATCH` if the database is newer than the code can work with
 */
export async function migrate(pool: PgPool, names: SqlNames): Promise<MigrationResult> {
  const state = await readSchemaState(pool, names);
  if (state.version >= SCHEMA_VERSION) return nothingToDo(state, names);

  // Read before a connection is taken: none is held while the disk is waited for.
  const migrations = await readMigrations(names);
  const client = await pool.connect();
  // Lent clients have no listener, and a connection that breaks between two statements would end the process.
  client.on?.('error', ignore);
  let failed = true;
  try {
    const result = await inTransaction(client, names, migrations);
    failed = false;
    return result;
  } finally {
    client.off?.('error', ignore);
    // Whatever state the connection is in after a failure, the next user must not inherit it.
    client.release(failed);
  }
}

async function inTransaction(
  client: PgClient,
  names: SqlNames,
  migrations: readonly Migration[],
): Promise<MigrationResult> {
  const run = (text: string): Promise<unknown> =>
    client.query({ text, query_timeout: GIVE_UP_AFTER_MS });
  // Said and not left to the database's default: what others have done while this one waited must be seen.
  await run('BEGIN ISOLATION LEVEL READ COMMITTED');
  await run(`SET LOCAL lock_timeout = ${LOCK_WITHIN_MS}`);
  // IF NOT EXISTS is not safe against a concurrent creator. A transaction's lock, not a session's: it holds behind
  // a pooler in transaction mode too, and cannot be left behind.
  await run(`SELECT pg_advisory_xact_lock(${ADVISORY_LOCK})`);
  const state = await readSchemaState(client, names);
  if (state.version >= SCHEMA_VERSION) {
    await run('COMMIT');
    return nothingToDo(state, names);
  }
  const from = state.version;
  const pending = migrations.filter(({ version }) => version > from);
  for (const { sql } of pending) await run(sql);
  await run('COMMIT');
  return { from, to: SCHEMA_VERSION, applied: pending.map(({ file }) => file) };
}

/** Also where a newer version of this package has been: it does not take back what that one has done. */
function nothingToDo(state: SchemaState, names: SqlNames): MigrationResult {
  assertVersion(state, names);
  return { from: state.version, to: state.version, applied: [] };
}

function ignore(): void {
  // The statement under way fails with it.
}
