import { InMemoryOutboxStore } from '../../src/testing.js';
import { migrateOutbox, type OutboxModuleOptions } from '../../src/index.js';
import { createDatabase, type TestDatabase } from './database.js';

/** Where the events of a test rest, and the past: what a test cannot wait for has already happened. */
export interface RestingPlace {
  /** For `OutboxModule.forRoot`. A fresh, empty outbox each time it is asked for. */
  empty(): Promise<Pick<OutboxModuleOptions, 'store' | 'pool'>>;
  /** Everything in it becomes so much older. */
  age(ms: number): Promise<void>;
  /** The ids of its events, oldest first. */
  ids(): Promise<string[]>;
  close(): Promise<void>;
}

export type RestingPlaceKind = 'memory' | 'PostgreSQL 18';

/** For `describe.each`. */
export const RESTING_PLACES: readonly RestingPlaceKind[] = ['memory', 'PostgreSQL 18'];

export async function openRestingPlace(kind: RestingPlaceKind): Promise<RestingPlace> {
  return kind === 'memory' ? inMemory() : inPostgres(await createDatabase());
}

function inMemory(): RestingPlace {
  let store = new InMemoryOutboxStore();
  return {
    async empty() {
      store = new InMemoryOutboxStore();
      return { store };
    },
    async age(ms) {
      store.advance(ms);
    },
    async ids() {
      return store.all().map(({ id }) => id);
    },
    async close() {},
  };
}

function inPostgres(database: TestDatabase): RestingPlace {
  let migrated: Promise<unknown> | undefined;
  return {
    async empty() {
      migrated ??= migrateOutbox({ database: database.pool });
      await migrated;
      await database.query('TRUNCATE outbox_events');
      return { pool: database.pool };
    },
    async age(ms) {
      await age(database, ms);
    },
    async ids() {
      const rows = await database.query<{ id: string }>(
        'SELECT id FROM outbox_events ORDER BY created_at, id',
      );
      return rows.map(({ id }) => id);
    },
    close: () => database.drop(),
  };
}

/** Moves every time in the table back, as if so much had passed since. */
export async function age(database: TestDatabase, ms: number): Promise<void> {
  await database.query(
    `UPDATE outbox_events
     SET created_at = created_at - step, scheduled_at = scheduled_at - step, leased_until = leased_until - step,
         processed_at = processed_at - step, unheard_since = unheard_since - step
     FROM (SELECT $1::float8 * interval '1 millisecond' AS step) AS passed`,
    [ms],
  );
}
