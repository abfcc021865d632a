import { migrate } from '../../../src/schema/migrate.js';
import { PostgresOutboxStore } from '../../../src/store/postgres/postgres-outbox-store.js';
import { sqlNames, type SqlNames } from '../../../src/store/postgres/sql-names.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import type { OpenTransaction, RawRow, StoreUnderTest } from '../conformance.js';

export interface PostgresOptions {
  major?: 14 | 18;
  schema?: string;
  table?: string;
}

export interface PostgresUnderTest extends StoreUnderTest {
  readonly store: PostgresOutboxStore;
  readonly database: TestDatabase;
  readonly names: SqlNames;
}

/** A database of its own with the outbox in it. */
export async function openPostgres({
  major = 18,
  schema,
  table,
}: PostgresOptions = {}): Promise<PostgresUnderTest> {
  const database = await createDatabase(major);
  const names = sqlNames(schema, table);
  await migrate(database.pool, names);
  const side = sqlSide(database, names);
  const open = new Set<OpenTransaction>();
  return {
    ...side,
    async clear() {
      // A test that has failed may have left one, which would hold up all the others.
      await Promise.all([...open].map((tx) => tx.rollback()));
      await side.clear();
    },
    store: new PostgresOutboxStore(database.pool, names),
    database,
    names,
    begin: () => begin(database, open),
    async [Symbol.asyncDispose]() {
      await Promise.all([...open].map((tx) => tx.rollback()));
      await database.drop();
    },
  };
}

const ms = (column: string, as: string): string =>
  `extract(epoch FROM ${column})::float8 * 1000 AS "${as}"`;

/** What a test needs beside the port, of any store that rests in PostgreSQL. */
export function sqlSide(
  { query }: Pick<TestDatabase, 'query'>,
  { events }: Pick<SqlNames, 'events'>,
): Pick<StoreUnderTest, 'clear' | 'now' | 'pass' | 'row' | 'analyze'> {
  return {
    async clear() {
      await query(`TRUNCATE ${events}`);
    },
    async now() {
      const [row] = await query<{ now: number }>(`SELECT ${ms('clock_timestamp()', 'now')}`);
      return row!.now;
    },
    async pass(passedMs) {
      await query(
        `UPDATE ${events} SET
           created_at = created_at - passed, scheduled_at = scheduled_at - passed,
           processed_at = processed_at - passed, leased_until = leased_until - passed,
           unheard_since = unheard_since - passed
         FROM (SELECT $1::float8 * interval '1 millisecond' AS passed) AS time`,
        [passedMs],
      );
    },
    async row(id) {
      const [row] = await query<RawRow & Record<string, unknown>>(
        `SELECT id, event_type AS "eventType", payload, metadata, status,
                retry_count AS "retryCount", last_error AS "lastError",
                acknowledged_by AS "acknowledgedBy", lease_token AS "leaseToken",
                previous_lives AS "previousLives", ${ms('created_at', 'createdAt')},
                ${ms('scheduled_at', 'scheduledAt')}, ${ms('processed_at', 'processedAt')},
                ${ms('leased_until', 'leasedUntil')}, ${ms('unheard_since', 'unheardSince')}
         FROM ${events} WHERE id = $1`,
        [id],
      );
      return row ?? null;
    },
    async analyze() {
      await query(`VACUUM ANALYZE ${events}`);
    },
  };
}

async function begin({ pool }: TestDatabase, open: Set<OpenTransaction>): Promise<OpenTransaction> {
  const client = await pool.connect();
  await client.query('BEGIN');
  const end = async (command: string): Promise<void> => {
    open.delete(transaction);
    await client.query(command);
    client.release();
  };
  const transaction: OpenTransaction = {
    executor: client,
    commit: () => end('COMMIT'),
    rollback: () => end('ROLLBACK'),
  };
  open.add(transaction);
  return transaction;
}
