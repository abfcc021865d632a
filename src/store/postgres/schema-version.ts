import { OutboxError } from '../../event/outbox-error.js';
import { AS_TEXT, ask, type PgQuery } from './pg-pool.js';
import { DEFAULT_SCHEMA, DEFAULT_TABLE, type SqlNames } from './sql-names.js';

/** The migration this code was written for: the highest number in `migrations/`. */
export const SCHEMA_VERSION = 7;

/** What the database says of itself. */
export interface SchemaState {
  /** The newest migration applied; 0 if there is none. */
  readonly version: number;
  /** Code that was written for a version below this cannot work any more. */
  readonly breaksBefore: number;
}

export async function readSchemaState(
  db: { query(config: PgQuery): Promise<{ rows: unknown[] }> },
  names: SqlNames,
): Promise<SchemaState> {
  const migrations = names.qualified('migrations');
  // Two statements: the second cannot even be parsed while the table is missing.
  // And not by to_regclass: it believes its cache, and after waiting for another migrator would still not see the table.
  const found = await ask(db, {
    text: `SELECT row_security_active(class.oid) AS guarded FROM pg_catalog.pg_class AS class
           JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
           WHERE namespace.nspname = $1 AND class.relname = $2`,
    values: [names.schema, `${names.prefix}_migrations`],
    types: AS_TEXT,
  });
  if (found.rows.length === 0) return { version: 0, breaksBefore: 0 };
  const { rows } = await ask(db, {
    text: `SELECT coalesce(max(version), 0) AS version, coalesce(max(breaks_before), 0) AS breaks_before
           FROM ${migrations}`,
    types: AS_TEXT,
  });
  const { version, breaks_before: breaksBefore } = rows[0] as Record<string, string>;
  const { guarded } = found.rows[0] as { guarded: string };
  if (Number(version) === 0 && guarded === 't') throw versionIsHidden(names);
  return { version: Number(version), breaksBefore: Number(breaksBefore) };
}

/** @throws OutboxError `SCHEMA_MISMATCH` that says what to run */
export async function assertSchemaVersion(
  db: { query(config: PgQuery): Promise<{ rows: unknown[] }> },
  names: SqlNames,
): Promise<void> {
  assertVersion(await readSchemaState(db, names), names);
}

/**
 * A newer database will do unless it says otherwise: in a rolling deploy the schema comes first, and old processes go
 * on, and start again, until the last of them is replaced.
 * @throws OutboxError `SCHEMA_MISMATCH` that says what to run
 */
export function assertVersion({ version, breaksBefore }: SchemaState, names: SqlNames): void {
  if (version >= SCHEMA_VERSION && breaksBefore <= SCHEMA_VERSION) return;
  if (version > SCHEMA_VERSION) throw databaseIsNewer(version, names);
  if (version === 0) throw outboxIsMissing(names);
  throw mismatch(`is at outbox version ${version}, this code needs ${SCHEMA_VERSION}`, names);
}

export function outboxIsMissing(names: SqlNames, cause?: unknown): OutboxError {
  return mismatch('has no outbox yet', names, cause);
}

function versionIsHidden(names: SqlNames): OutboxError {
  const table = names.qualified('migrations');
  return new OutboxError(
    'SCHEMA_MISMATCH',
    `row level security hides the rows of ${table} from this role: as its owner, run "CREATE POLICY app_reads_version ` +
      `ON ${table} FOR SELECT TO <role> USING (true)", and what else the README says of roles`,
  );
}

function mismatch(state: string, names: SqlNames, cause?: unknown): OutboxError {
  const flags =
    (names.schema === DEFAULT_SCHEMA ? '' : ` --schema ${names.schema}`) +
    (names.table === DEFAULT_TABLE ? '' : ` --table ${names.table}`);
  return new OutboxError(
    'SCHEMA_MISMATCH',
    `the database ${state} (${names.events}): run "npx nestjs-outbox-relay migrate${flags}", or set migrate: true`,
    { cause },
  );
}

export function databaseIsNewer(version: number, names: SqlNames): OutboxError {
  return new OutboxError(
    'SCHEMA_MISMATCH',
    `the database is at outbox version ${version} (${names.events}), which code written for version ${SCHEMA_VERSION} cannot use any more: ` +
      'upgrade nestjs-outbox-relay',
  );
}
