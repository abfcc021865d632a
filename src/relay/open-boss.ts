import type { TickBoss } from './ticks.js';

/** Where the outbox's own pg-boss lives in the database. */
const BOSS_SCHEMA = 'pgboss';

const STOP_TIMEOUT_MS = 5_000;

/** What pg-boss runs its SQL on: a connection string, or the application's pool. */
export type BossDatabase =
  | { readonly connectionString: string }
  | { readonly pool: { query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }> } };

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
    ...('pool' in database
      ? {
          db: {
            executeSql: async (text: string, values?: unknown[]) =>
              database.pool.query(text, values),
          },
        }
      : { connectionString: database.connectionString, max: 2, connectionTimeoutMillis: 10_000 }),
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
