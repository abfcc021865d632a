import type { SqlExecutor } from '../store/outbox-store.js';
import { onlyWhileOpen } from './only-while-open.js';
import { onEndOf } from './pg.js';
import {
  hasMethods,
  notOpen,
  refusal,
  type Shape,
  type TransactionTool,
} from './transaction-tool.js';

/** The `manager` of `dataSource.transaction(async (manager) => …)`, or a query runner after `startTransaction()`. */
export type TypeOrmTransaction = TypeOrmManager | TypeOrmQueryRunner;

export interface TypeOrmManager {
  query(text: string, parameters?: never): Promise<unknown>;
  readonly queryRunner?: TypeOrmQueryRunner | undefined;
}

export interface TypeOrmQueryRunner {
  query(text: string, parameters?: never): Promise<unknown>;
  readonly isTransactionActive: boolean;
  readonly isReleased: boolean;
  /** Its own connection to the database, once it has one. */
  connect(): Promise<unknown>;
}

export const typeorm: TransactionTool = {
  whatToPass:
    "the manager that TypeORM's dataSource.transaction(async (manager) => …) hands you, or a query runner after startTransaction()",

  recognises: (candidate) => isQueryRunner(candidate) || isManager(candidate),

  async open(candidate) {
    const runner = isQueryRunner(candidate) ? candidate : candidate['queryRunner'];
    if (typeof runner !== 'object' || runner === null) {
      throw refusal(
        `is TypeORM's ${hasMethods(candidate, 'createQueryRunner') ? 'DataSource' : 'EntityManager outside a transaction'}, ` +
          'whose every query may take another connection',
        typeorm,
      );
    }
    const active = runner as TypeOrmQueryRunner;
    if (active.isReleased || !active.isTransactionActive) throw notOpen(typeorm);
    // With an open transaction it has a connection: a pg client, which tells when the transaction ends.
    const client = await active.connect();
    return {
      executor: onlyWhileOpen(executorOf(active), () => notOpen(typeorm)),
      onEnd: (callback) => onEndOf(client, callback),
    };
  },
};

function executorOf(runner: TypeOrmQueryRunner): SqlExecutor {
  return {
    query: async (text, values) => ({
      rows: (await runner.query(text, values as never)) as unknown[],
    }),
  };
}

function isQueryRunner(candidate: Shape): boolean {
  return (
    typeof candidate['isTransactionActive'] === 'boolean' &&
    hasMethods(candidate, 'query', 'startTransaction', 'connect')
  );
}

function isManager(candidate: Shape): boolean {
  return hasMethods(candidate, 'query', 'getRepository', 'transaction');
}
