import type { SqlExecutor } from '../store/outbox-store.js';
import { onlyWhileOpen } from './only-while-open.js';
import { pg } from './pg.js';
import { postgresJs } from './postgres-js.js';
import {
  hasMethods,
  neverTold,
  notOpen,
  refusal,
  type Shape,
  type TransactionTool,
} from './transaction-tool.js';

/** The `tx` of `db.transaction(async (tx) => …)`, on any PostgreSQL driver. */
export interface DrizzleTransaction {
  execute(query: never): PromiseLike<unknown>;
  rollback(): never;
}

export const drizzle: TransactionTool = {
  whatToPass: "the tx that Drizzle's db.transaction(async (tx) => …) hands you",

  recognises: (candidate) =>
    hasMethods(candidate, 'execute', 'transaction') &&
    'dialect' in candidate &&
    'session' in candidate,

  async open(candidate) {
    if (!hasMethods(candidate, 'rollback'))
      throw refusal(
        'is a Drizzle database, whose every query may take another connection',
        drizzle,
      );

    // What lies below tells more: whether its transaction is open, and when it ends.
    const client = clientOf(candidate);
    const below = client && [postgresJs, pg].find((tool) => tool.recognises(client));
    if (client !== undefined && below !== undefined) return below.open(client, drizzle);

    const executor = executorOf(candidate as unknown as DrizzleTransaction);
    return { executor: onlyWhileOpen(executor, () => notOpen(drizzle)), onEnd: neverTold };
  },
};

function clientOf({ session }: Shape): Shape | undefined {
  const client = (session as { client?: unknown } | undefined)?.client;
  return typeof client === 'function' || (typeof client === 'object' && client !== null)
    ? (client as Shape)
    : undefined;
}

/** By way of Drizzle, for drivers that are not known here. */
function executorOf(tx: DrizzleTransaction): SqlExecutor {
  return {
    async query(text, values) {
      const query = {
        getSQL: () => query,
        toQuery: () => ({ sql: text, params: values, typings: values.map(() => 'none') }),
      };
      const answer = await tx.execute(query as never);
      return Array.isArray(answer) ? { rows: answer } : (answer as { rows: unknown[] });
    },
  };
}
