import { expect, it } from '@jest/globals';
import { MikroORM } from '@mikro-orm/postgresql';
import { migrateOutbox } from '../../src/index.js';
import { createDatabase } from '../support/database.js';
import { startApp } from '../support/outbox-app.js';
import { transactionSuite } from './suite.js';
import { mikroOrm, mikroOrmByHand, Quote } from './tools/mikro-orm.js';

transactionSuite(mikroOrm);
transactionSuite(mikroOrmByHand);

it("MikroORM's EntityManager finds the current transaction itself, flushed entities included", async () => {
  await using database = await createDatabase();
  await migrateOutbox({ database: database.pool });
  await database.query('CREATE TABLE quotes (id integer PRIMARY KEY)');
  const orm = await MikroORM.init({ clientUrl: database.connectionString, entities: [Quote] });
  const { em } = orm;
  const app = await startApp({
    outbox: {
      pool: database.pool,
      currentTransaction: () => (em.isInTransaction() ? em : undefined),
    },
  });
  const place = (id: number, problem?: string) =>
    em.transactional(async (inner) => {
      inner.create(Quote, { id });
      await app.outbox.enqueue('a', { id });
      if (problem !== undefined) throw new Error(problem);
    });
  try {
    await place(1);
    await expect(place(2, 'out of stock')).rejects.toThrow('out of stock');
    // The flush at the end of the transaction fails: the event goes with it.
    await expect(place(1)).rejects.toThrow('duplicate key');
    await app.outbox.enqueue('a', { id: 3 });
    const events = await database.query(`SELECT payload FROM outbox_events ORDER BY created_at`);
    expect(events).toEqual([{ payload: { id: 1 } }, { payload: { id: 3 } }]);
    expect(await database.query('SELECT id FROM quotes')).toEqual([{ id: 1 }]);
  } finally {
    await app.close();
    await orm.close();
  }
});
