import { invalid } from '../event/outbox-error.js';
import { isConnectionString, shownConnectionString } from '../store/postgres/connection-string.js';
import { openPool } from '../store/postgres/open-pool.js';
import type { PgPool } from '../store/postgres/pg-pool.js';
import { sqlNames } from '../store/postgres/sql-names.js';
import { migrate, type MigrationResult } from './migrate.js';
import { readMigrations } from './migration-files.js';

export interface MigrateOptions {
  /** A connection string, or a `pg` pool (which stays open). */
  readonly database: string | PgPool;
  /** Default `public`. */
  readonly schema?: string | undefined;
  /** Default `outbox_events`. */
  readonly table?: string | undefined;
}

/**
 * Brings the database to the version this code needs. Safe from any number of processes at once, and again.
 *
 * ```ts
 * await migrateOutbox({ database: 'postgres://user:password@host:5432/database' });
 * ```
 * @throws OutboxError `INVALID_ARGUMENT` for a name that cannot be used, `SCHEMA_MISMATCH` if the database is newer than the code
 */
export async function migrateOutbox({
  database,
  schema,
  table,
}: MigrateOptions): Promise<MigrationResult> {
  const names = sqlNames(schema, table);
  assertDatabase(database);
  if (typeof database !== 'string') return migrate(database, names);
  const pool = openPool(database, () => {});
  try {
    return await migrate(pool, names);
  } finally {
    await pool.end();
  }
}

/** The migrations as one SQL text, for a migration tool of your own. */
export async function outboxSql({
  schema,
  table,
}: Pick<MigrateOptions, 'schema' | 'table'> = {}): Promise<string> {
  const migrations = await readMigrations(sqlNames(schema, table));
  return migrations.map(({ file, sql }) => `-- ${file}\n${sql}`).join('\n');
}

/** An environment variable that is not set would lead to whatever database node-postgres takes for the default. */
function assertDatabase(database: unknown): void {
  const isPool = typeof database === 'object' && database !== null && 'query' in database;
  if (isPool || isConnectionString(database)) return;
  throw invalid(
    'database must be a pg Pool or a PostgreSQL URL such as postgres://user:password@host:5432/database, ' +
      `got ${shownConnectionString(database)} (is DATABASE_URL set?)`,
  );
}
