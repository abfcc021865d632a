import type { SqlExecutor } from '../store/outbox-store.js';
import { EndWatch } from './end-watch.js';
import { onlyWhileOpen } from './only-while-open.js';
import {
  hasMethods,
  notOpen,
  refusal,
  type Named,
  type Shape,
  type TransactionTool,
} from './transaction-tool.js';

/** A `pg` client between `BEGIN` and `COMMIT`. */
export interface PgTransaction {
  query(text: string, values: unknown[]): Promise<{ rows: unknown[] }>;
}

/** What a `pg` client, 8.17 and newer, tells of its transaction. */
interface TellingClient {
  /** `I`dle, in a `T`ransaction, in a failed one (`E`). */
  getTransactionStatus(): string | null;
  on(event: 'drain' | 'end', listener: () => void): unknown;
  off(event: 'drain' | 'end', listener: () => void): unknown;
}

export const pg: TransactionTool = {
  whatToPass: 'the pg client on which you ran BEGIN',

  recognises: (candidate) => hasMethods(candidate, 'query'),

  async open(candidate, named = pg) {
    if ('totalCount' in candidate || 'idleCount' in candidate)
      throw refusal('is a pool, whose every query may take another connection', named);
    const client = candidate as unknown as PgTransaction;
    if (tells(client)) {
      if ((client.getTransactionStatus() ?? 'I') === 'I') throw notOpen(named);
    } else {
      await assertAnswersLikePg(client, named);
    }
    const executor: SqlExecutor = { query: (text, values) => client.query(text, values) };
    return {
      executor: onlyWhileOpen(executor, () => notOpen(named)),
      onEnd: (callback) => onEndOf(client, callback),
    };
  },
};

/**
 * Calls back when the transaction of a client has ended.
 * @returns `false` if that is no client of pg's, or one that does not tell
 */
export function onEndOf(client: unknown, callback: () => void): boolean {
  if (!tells(client)) return false;
  ends.add(client, callback);
  return true;
}

// Many things have a query method. One that answers otherwise would be found out only after the event is written.
async function assertAnswersLikePg(client: PgTransaction, named: Named): Promise<void> {
  const answer = (await client.query('SELECT 1 AS one', [])) as unknown;
  const rows = typeof answer === 'object' && answer !== null && 'rows' in answer && answer.rows;
  if (!Array.isArray(rows)) throw refusal('is not a pg client', named);
}

function tells(client: unknown): client is TellingClient {
  return (
    typeof client === 'object' &&
    client !== null &&
    hasMethods(client as Shape, 'getTransactionStatus', 'on', 'off')
  );
}

const ends = new EndWatch<TellingClient>((client, ended) => {
  // `drain` comes after each answer that leaves no query waiting; the status is up to date by then.
  const check = (): void => {
    if (client.getTransactionStatus() === 'I') end();
  };
  const end = (): void => {
    client.off('drain', check);
    client.off('end', end);
    ended();
  };
  client.on('drain', check);
  client.on('end', end);
  // It may have ended while the answer to the enqueue was on its way through the layers above.
  check();
});
