import { migrateOutbox, type OutboxModuleOptions } from '../../src/index.js';
import { migrate } from '../../src/schema/migrate.js';
import { sqlNames } from '../../src/store/postgres/sql-names.js';
import { InMemoryOutboxStore } from '../../src/testing.js';
import type { PostgresMajor } from '../../tools/postgres-cluster.js';
import { createDatabase } from '../support/database.js';
import type { ProjectKind } from '../support/supabase/projects.js';

/** Where the sentinels of a test rest. */
export interface Place extends AsyncDisposable {
  /** For `OutboxModule.forRoot`. */
  outbox(): OutboxModuleOptions;
  /** Forgets every sentinel. */
  empty(): Promise<void>;
  /** Time goes by there: everything that was written is so much older. */
  advance(ms: number): Promise<void>;
}

export async function openMemory(): Promise<Place> {
  let store = new InMemoryOutboxStore();
  return {
    outbox: () => ({ store }),
    async empty() {
      store = new InMemoryOutboxStore();
    },
    async advance(ms) {
      store.advance(ms);
    },
    async [Symbol.asyncDispose]() {},
  };
}

export async function openPostgres(major: PostgresMajor): Promise<Place> {
  const database = await createDatabase(major);
  await migrateOutbox({ database: database.pool });
  return {
    ...sqlSide(database, 'outbox_sentinels'),
    outbox: () => ({ pool: database.pool }),
    [Symbol.asyncDispose]: () => database.drop(),
  };
}

export async function openSupabase(kind: ProjectKind): Promise<Place> {
  const project = await kind.open();
  const names = sqlNames('public', kind.table);
  await migrate(project.pool, names);
  const { url, keys } = project;
  return {
    ...sqlSide(project, names.qualified('sentinels')),
    outbox: () => ({ supabase: { url, serviceRoleKey: keys.secret }, table: kind.table }),
    [Symbol.asyncDispose]: () => project[Symbol.asyncDispose](),
  };
}

/** The back door. */
function sqlSide(
  database: { query(text: string, values?: unknown[]): Promise<unknown> },
  sentinels: string,
): Pick<Place, 'empty' | 'advance'> {
  return {
    async empty() {
      await database.query(`TRUNCATE ${sentinels}`);
    },
    async advance(ms) {
      await database.query(
        `UPDATE ${sentinels} SET leased_until = leased_until - $1 * interval '1 ms',
           closed_at = closed_at - $1 * interval '1 ms', closed_until = closed_until - $1 * interval '1 ms'`,
        [ms],
      );
    },
  };
}
