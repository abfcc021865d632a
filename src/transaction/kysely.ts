import type { SqlExecutor } from '../store/outbox-store.js';
import { onlyWhileOpen } from './only-while-open.js';
import {
  hasMethods,
  neverTold,
  notOpen,
  refusal,
  type Named,
  type TransactionTool,
} from './transaction-tool.js';

/** The `trx` of `db.transaction().execute(…)` or `db.startTransaction().execute()`. */
export interface KyselyTransaction {
  readonly isTransaction: true;
  executeQuery(query: never): Promise<{ readonly rows: readonly unknown[] }>;
}

export const kysely: TransactionTool = {
  whatToPass: "the trx that Kysely's db.transaction().execute(async (trx) => …) hands you",

  recognises: (candidate) =>
    hasMethods(candidate, 'executeQuery') && typeof candidate['isTransaction'] === 'boolean',

  open(candidate, named = kysely) {
    if (candidate['isTransaction'] !== true)
      throw refusal('is Kysely itself, whose every query may take another connection', named);
    // Only a controlled transaction says so; of the other kind, executeQuery does.
    if (candidate['isCommitted'] === true || candidate['isRolledBack'] === true)
      throw notOpen(named);
    const executor = executorOf(candidate as unknown as KyselyTransaction, named);
    return { executor: onlyWhileOpen(executor, () => notOpen(named)), onEnd: neverTold };
  },
};

function executorOf(trx: KyselyTransaction, named: Named): SqlExecutor {
  return {
    async query(text, values) {
      // A query as its compiler would make it of raw SQL.
      const query = {
        sql: text,
        parameters: values,
        query: { kind: 'RawNode', sqlFragments: [text], parameters: [] },
        queryId: { queryId: 'outbox' },
      };
      try {
        const { rows } = await trx.executeQuery(query as never);
        return { rows: [...rows] };
      } catch (error) {
        if (saysItHasEnded(error)) throw notOpen(named, error);
        throw error;
      }
    },
  };
}

function saysItHasEnded(error: unknown): boolean {
  return (
    error instanceof Error && /^Transaction is already (committed|rolled back)/.test(error.message)
  );
}
