import type { PgPool } from '../store/postgres/pg-pool.js';
import type { TickBoss } from './ticks.js';

/** Where the outbox's own pg-boss lives in the database. */
export const BOSS_SCHEMA = 'pgboss';

const STOP_TIMEOUT_MS = 5_000;

// A network that swallows everything would stop the ticks for a quarter of an hour. Long enough for pg-boss to build
// its schema.
const QUERY_TIMEOUT_MS = 60_000;

/** What pg-boss runs its SQL on: a connection string, or the application's pool. */
export type BossDatabase =
  { readonly connectionString: string } | { readonly pool: Pick<PgPool, 'query'> };

export interface OwnBoss {
  readonly boss: TickBoss;
  readonly close: () => Promise<void>;
}

/**
 * Opens a pg-boss of the outbox's own.
 * @param onTrouble background trouble: pg-boss reports it as an event that ends the process if nobody listens
 */
export async function openBoss(
  database: BossDatabase,
  onTrouble: (error: unknown) => void,
): Promise<OwnBoss> {
  // Only loaded where it is needed: a process that does not relay need not have it.
  const { PgBoss } = await import('pg-boss');
  const boss = new PgBoss({
    schema: BOSS_SCHEMA,
    application_name: 'nestjs-outbox-relay pg-boss',
    // A trace for each tick of each process tells nobody anything.
    openTelemetry: { enabled: false },
    ...('pool' in database
      ? {
          db: {
            executeSql: async (text: string, values: unknown[] = []) =>
              database.pool.query({ text, values, query_timeout: QUERY_TIMEOUT_MS }),
          },
        }
      : {
          connectionString: database.connectionString,
          max: 2,
          connectionTimeoutMillis: 10_000,
          query_timeout: QUERY_TIMEOUT_MS,
        }),
  });
  boss.on('error', onTrouble);
  boss.on('warning', onTrouble);
  try {
    await boss.start();
  } catch (error) {
    await boss.stop({ graceful: false, close: true }).catch(() => {});
    throw error;
  }
  return {
    boss,
    close: () => boss.stop({ graceful: true, timeout: STOP_TIMEOUT_MS, close: true }),
  };
}
