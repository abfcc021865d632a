import { type EntityManager, EntitySchema, MikroORM } from '@mikro-orm/postgresql';
import type { OpenTool, Tool } from './tool.js';

export const Quote = new EntitySchema<{ id: number }>({
  name: 'Quote',
  tableName: 'quotes',
  properties: { id: { type: 'integer', primary: true, autoincrement: false } },
});

const WHAT_TO_PASS = "pass the em that MikroORM's em.transactional(async (em) => …) hands you";

export const mikroOrm: Tool = {
  name: 'MikroORM',
  whatToPass: WHAT_TO_PASS,
  tellsItsEnd: false,
  async open({ connectionString }) {
    const orm = await connect(connectionString);
    return {
      ...means(orm),
      transaction: (work) => orm.em.fork().transactional((em) => work(em)),
      nested: (tx, work) => (tx as EntityManager).transactional((em) => work(em)),
    };
  },
};

export const mikroOrmByHand: Tool = {
  name: 'MikroORM, begin and commit',
  whatToPass: WHAT_TO_PASS,
  tellsItsEnd: false,
  async open({ connectionString }) {
    const orm = await connect(connectionString);
    return {
      ...means(orm),
      async transaction(work) {
        const em = orm.em.fork();
        await em.begin();
        try {
          const result = await work(em);
          await em.commit();
          return result;
        } catch (error) {
          await em.rollback();
          throw error;
        }
      },
      nested: (tx, work) => (tx as EntityManager).transactional((em) => work(em)),
    };
  },
};

async function connect(clientUrl: string): Promise<MikroORM> {
  return MikroORM.init({ clientUrl, entities: [Quote], debug: false });
}

function means(orm: MikroORM): Omit<OpenTool, 'transaction' | 'nested'> {
  return {
    insertQuote: (tx, id) => (tx as EntityManager).insert(Quote, { id }),
    fail: (tx) => (tx as EntityManager).execute('SELECT 1/0'),
    mistakes: [
      [
        'an EntityManager outside a transaction',
        () => orm.em.fork(),
        'tx is an EntityManager of MikroORM outside a transaction',
      ],
      ['orm.em', () => orm.em, 'tx is an EntityManager of MikroORM outside a transaction'],
    ],
    close: () => orm.close(),
  };
}
