import type { SqlExecutor } from '../store/outbox-store.js';
import { AS_TEXT, ask, type PgPool } from '../store/postgres/pg-pool.js';
import type { SqlNames } from '../store/postgres/sql-names.js';

/** Which consumer has done which event: the table `outbox_inbox`. */
export class InboxTable {
  constructor(
    /** Of the database the events rest in. */
    readonly pool: PgPool,
    private readonly names: SqlNames,
  ) {}

  /**
   * Records that `consumer` does the event, as part of the executor's transaction. Waits for another transaction that
   * is about to record the same.
   * @returns whether it is the first time
   */
  async record(executor: SqlExecutor, eventId: string, consumer: string): Promise<boolean> {
    const { rows } = await executor.query(
      `SELECT ${this.names.qualified('inbox_record')}($1::text::uuid, $2::text)::text AS first`,
      [eventId, consumer],
    );
    return Object.values(rows[0] as object)[0] === 'true';
  }

  /**
   * Deletes rows that are old enough, except of events that can still be delivered.
   * @returns how many, at most `limit`
   */
  async prune(olderThanMs: number, limit: number): Promise<number> {
    const { rows } = await ask(this.pool, {
      text: `SELECT ${this.names.qualified('inbox_prune')}($1, $2) AS pruned`,
      values: [olderThanMs, limit],
      types: AS_TEXT,
    });
    return Number((rows[0] as { pruned: string }).pruned);
  }
}
