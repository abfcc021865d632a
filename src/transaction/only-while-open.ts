import { randomUUID } from 'node:crypto';
import type { OutboxError } from '../event/outbox-error.js';
import type { SqlExecutor } from '../store/outbox-store.js';

const HAS_WRITTEN = 'pg_current_xact_id_if_assigned() IS NOT NULL';

// Set for the rest of the transaction only: outside of one it is gone again as soon as the statement is.
const MARK = 'outbox_relay.transaction';

/**
 * Lets SQL take effect inside an open transaction only, whatever the tool believes: a COMMIT may have been sent
 * already and not answered (an `await` is missing), and a transaction object that has ended may hold a connection that
 * went back to the pool. Written in autocommit, the event would be there whatever became of the data.
 *
 * The server is asked in the statement itself. A transaction that has written something is one: in autocommit no
 * statement begins with a transaction id. One that has not is marked, and the statement repeated on condition that
 * the mark is still there; only then does it cost a second round trip. Nothing fails in either, so nothing poisons
 * the caller's transaction (`SAVEPOINT`, which fails outside of one, would be the other way to ask).
 */
export function onlyWhileOpen(executor: SqlExecutor, notOpen: () => OutboxError): SqlExecutor {
  return {
    async query(text, values) {
      const mark = `$${values.length + 1}::text`;
      const withMark = [...values, randomUUID()];
      const ask = async (statement: string): Promise<unknown> =>
        firstValue((await executor.query(statement, withMark)).rows);

      const answer =
        (await ask(`SELECT CASE WHEN ${HAS_WRITTEN} THEN (${text}) END AS answer,
          CASE WHEN NOT (${HAS_WRITTEN}) THEN set_config('${MARK}', ${mark}, true) END AS mark`)) ??
        (await ask(
          `SELECT CASE WHEN current_setting('${MARK}', true) = ${mark} THEN (${text}) END AS answer`,
        ));
      if (answer === null || answer === undefined) throw notOpen();
      return { rows: [{ answer }] };
    },
  };
}

/** Whatever the column is called: drivers and ORMs have options that rename columns. */
export function firstValue(rows: readonly unknown[]): unknown {
  return Object.values(rows[0] as object)[0] as unknown;
}
