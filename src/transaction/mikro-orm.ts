import { knex } from './knex.js';
import { kysely } from './kysely.js';
import { hasMethods, refusal, type Shape, type TransactionTool } from './transaction-tool.js';

/** An `EntityManager` inside `em.transactional(…)`, or between `em.begin()` and `em.commit()`. */
export interface MikroOrmTransaction {
  isInTransaction(): boolean;
  getTransactionContext(): unknown;
}

export const mikroOrm: TransactionTool = {
  whatToPass: "the em that MikroORM's em.transactional(async (em) => …) hands you",

  recognises: (candidate) => hasMethods(candidate, 'isInTransaction', 'getTransactionContext'),

  async open(candidate) {
    const em = candidate as unknown as MikroOrmTransaction;
    const context = em.getTransactionContext() as Shape | undefined;
    if (context === undefined) {
      throw refusal(
        'is an EntityManager of MikroORM outside a transaction, whose every query may take another connection',
        mikroOrm,
      );
    }
    // What it keeps its transaction in: Kysely's from MikroORM 7 on, Knex's before.
    const below = [kysely, knex].find((tool) => tool.recognises(context));
    if (below === undefined)
      throw refusal('has a transaction context that is not known here', mikroOrm);
    return below.open(context, mikroOrm);
  },
};
