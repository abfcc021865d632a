import type { SqlExecutor } from '../store/outbox-store.js';
import { EndWatch } from './end-watch.js';
import { onlyWhileOpen } from './only-while-open.js';
import { hasMethods, notOpen, refusal, type TransactionTool } from './transaction-tool.js';

/** The `trx` of `knex.transaction(…)`, outermost or nested. */
export interface KnexTransaction {
  isCompleted(): boolean;
  raw(sql: string, bindings: never): PromiseLike<unknown>;
  readonly executionPromise: Promise<unknown>;
  readonly parentTransaction?: KnexTransaction | undefined;
}

export const knex: TransactionTool = {
  whatToPass: "the trx that Knex's knex.transaction(async (trx) => …) hands you",

  recognises: (candidate) =>
    typeof candidate === 'function' && hasMethods(candidate, 'raw', 'transaction', 'batchInsert'),

  open(candidate, named = knex) {
    if (candidate['isTransaction'] !== true || !hasMethods(candidate, 'isCompleted'))
      throw refusal('is Knex itself, whose every query may take another connection', named);
    const trx = candidate as unknown as KnexTransaction;
    if (trx.isCompleted()) throw notOpen(named);
    return {
      executor: onlyWhileOpen(executorOf(trx), () => notOpen(named)),
      onEnd: (callback) => {
        ends.add(outermost(trx), callback);
        return true;
      },
    };
  },
};

function executorOf(trx: KnexTransaction): SqlExecutor {
  return {
    async query(text, values) {
      // Knex has its own placeholders, filled in the order in which they stand.
      const bindings: unknown[] = [];
      const sql = text.replaceAll(/\$(\d+)/g, (_, number: string) => {
        bindings.push(values[Number(number) - 1]);
        return '?';
      });
      const answer = await trx.raw(sql, bindings as never);
      // A postProcessResponse of the application's may have taken the rows out already.
      return Array.isArray(answer) ? { rows: answer } : (answer as { rows: unknown[] });
    },
  };
}

const ends = new EndWatch<KnexTransaction>(({ executionPromise }, ended) => {
  // A rollback rejects it.
  void executionPromise.then(ended, ended);
});

/** A nested one is over with its savepoint, while its events are not to be seen before the whole is committed. */
function outermost(trx: KnexTransaction): KnexTransaction {
  return trx.parentTransaction === undefined ? trx : outermost(trx.parentTransaction);
}
