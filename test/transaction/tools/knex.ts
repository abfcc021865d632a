import { knex as open, type Knex } from 'knex';
import type { Tool } from './tool.js';

export const knex: Tool = {
  name: 'Knex',
  whatToPass: "pass the trx that Knex's knex.transaction(async (trx) => …) hands you",
  tellsItsEnd: true,
  async open({ connectionString }) {
    const db = open({ client: 'pg', connection: connectionString });
    return {
      transaction: (work) => db.transaction((trx) => work(trx)),
      nested: (tx, work) => (tx as Knex.Transaction).transaction((trx) => work(trx)),
      insertQuote: async (tx, id) => (tx as Knex.Transaction)('quotes').insert({ id }),
      fail: async (tx) => (tx as Knex.Transaction).raw('SELECT 1/0'),
      mistakes: [
        [
          'knex itself',
          () => db,
          'tx is Knex itself, whose every query may take another connection',
        ],
      ],
      close: () => db.destroy(),
    };
  },
};
