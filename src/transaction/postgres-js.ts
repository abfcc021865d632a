import type { SqlExecutor } from '../store/outbox-store.js';
import { onlyWhileOpen } from './only-while-open.js';
import {
  hasMethods,
  neverTold,
  notOpen,
  refusal,
  type TransactionTool,
} from './transaction-tool.js';

/** The `sql` of `sql.begin(async (sql) => …)`, or a reserved one on which you ran `begin`. */
export type PostgresJsTransaction = PostgresJs &
  ({ savepoint(...args: never[]): PromiseLike<unknown> } | { release(): void });

interface PostgresJs {
  unsafe(text: string, values: never): PromiseLike<unknown>;
}

export const postgresJs: TransactionTool = {
  whatToPass: "the sql that postgres.js's sql.begin(async (sql) => …) hands you",

  recognises: (candidate) =>
    typeof candidate === 'function' && hasMethods(candidate, 'unsafe', 'typed'),

  // It knows neither whether its transaction is open nor when it ends.
  open(candidate, named = postgresJs) {
    if (hasMethods(candidate, 'begin'))
      throw refusal('is postgres.js itself, whose every query may take another connection', named);
    const executor = executorOf(candidate as unknown as PostgresJs);
    return { executor: onlyWhileOpen(executor, () => notOpen(named)), onEnd: neverTold };
  },
};

function executorOf(sql: PostgresJs): SqlExecutor {
  return {
    // The statement says that its parameters are text: what postgres.js takes for JSON it would encode once more.
    query: async (text, values) => ({
      rows: (await sql.unsafe(text, values as never)) as unknown[],
    }),
  };
}
