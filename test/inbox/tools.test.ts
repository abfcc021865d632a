import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { migrateOutbox, OutboxInbox, type OutboxTransaction } from '../../src/index.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { startApp, type OutboxApp } from '../support/outbox-app.js';
import { deferred, until } from '../support/until.js';
import { TOOLS } from '../transaction/tools/all.js';
import type { OpenTool } from '../transaction/tools/tool.js';

describe.each(TOOLS)('the inbox with $name', (tool) => {
  let database: TestDatabase;
  let open: OpenTool;
  let app: OutboxApp;
  let inbox: OutboxInbox;
  let id: string;

  beforeAll(async () => {
    database = await createDatabase(tool.major);
    await migrateOutbox({ database: database.pool });
    await database.query('CREATE TABLE quotes (id integer PRIMARY KEY)');
    open = await tool.open(database);
  });
  beforeEach(async () => {
    await database.query('TRUNCATE outbox_inbox, quotes');
    app = await startApp({ outbox: { pool: database.pool } });
    inbox = app.module.get(OutboxInbox);
    id = randomUUID();
  });
  afterEach(() => app.close());
  afterAll(async () => {
    await open.close();
    await database.drop();
  });

  const once = (work: (tx: OutboxTransaction) => unknown, consumer = 'ledger') =>
    inbox.once(id, consumer, work, { transaction: (run) => open.transaction(run) });
  const recorded = async (): Promise<number> =>
    (await database.query('SELECT FROM outbox_inbox')).length;
  const quotes = async (): Promise<number> => (await database.query('SELECT FROM quotes')).length;

  it('does the work once for each consumer, in the transaction of the record', async () => {
    const work = async (tx: OutboxTransaction) => {
      await open.insertQuote(tx, 1);
      expect(await recorded()).toBe(0);
    };
    expect(await once(work)).toBe(true);
    expect(await once(work)).toBe(false);
    expect(await once((tx) => open.insertQuote(tx, 2), 'mailer')).toBe(true);
    expect(await recorded()).toBe(2);
    expect(await quotes()).toBe(2);
  });

  it('work that fails is rolled back with its record, and done the next time', async () => {
    const failing = once(async (tx) => {
      await open.insertQuote(tx, 1);
      throw new Error('the printer is on fire');
    });
    await expect(failing).rejects.toThrow('the printer is on fire');
    expect(await recorded()).toBe(0);
    expect(await quotes()).toBe(0);
    expect(await once((tx) => open.insertQuote(tx, 1))).toBe(true);
    expect(await quotes()).toBe(1);
  });

  it('work that catches the error of a statement has failed all the same', async () => {
    const failing = once(async (tx) => {
      await open.insertQuote(tx, 1);
      await Promise.resolve(open.fail(tx)).catch(() => {});
    });
    await expect(failing).rejects.toThrow();
    expect(await recorded()).toBe(0);
    expect(await quotes()).toBe(0);
  });

  it.each(['succeeds', 'fails'])(
    'a delivery at the same time waits for the first, which %s',
    async (end) => {
      const firstIsAtWork = deferred();
      const firstEnds = deferred();
      const first = once(async (tx) => {
        await open.insertQuote(tx, 1);
        firstIsAtWork.resolve();
        await firstEnds.promise;
        if (end === 'fails') throw new Error('the printer is on fire');
      });
      await firstIsAtWork.promise;
      let calls = 0;
      const second = once(async (tx) => {
        calls++;
        await open.insertQuote(tx, 1);
      });
      await until(async () => (await waiting(database)) === 1, { what: 'the second waits' });
      expect(calls).toBe(0);

      firstEnds.resolve();
      if (end === 'fails') await expect(first).rejects.toThrow('the printer is on fire');
      else expect(await first).toBe(true);
      expect(await second).toBe(end === 'fails');
      expect(calls).toBe(end === 'fails' ? 1 : 0);
      expect(await recorded()).toBe(1);
      expect(await quotes()).toBe(1);
    },
  );

  it('a record in a transaction of your own is part of it, and leaves it usable', async () => {
    await open.transaction(async (tx) => {
      expect(await inbox.record(id, 'ledger', { tx })).toBe(true);
      await open.insertQuote(tx, 1);
      expect(await recorded()).toBe(0);
    });
    await open.transaction(async (tx) => {
      expect(await inbox.record(id, 'ledger', { tx })).toBe(false);
      await open.insertQuote(tx, 2);
      expect(await inbox.record(id, 'ledger', { tx })).toBe(false);
    });
    const rolledBack = open.transaction(async (tx) => {
      expect(await inbox.record(id, 'mailer', { tx })).toBe(true);
      throw new Error('not today');
    });
    await expect(rolledBack).rejects.toThrow('not today');
    expect(await recorded()).toBe(1);
    expect(await quotes()).toBe(2);
  });

  it('refuses what is no open transaction', async () => {
    for (const [, thing, problem] of open.mistakes) {
      const tx = thing() as OutboxTransaction;
      await expect(inbox.record(id, 'ledger', { tx })).rejects.toThrow(problem);
      const within = inbox.once<OutboxTransaction>(id, 'ledger', () => {}, {
        transaction: async (run) => run(tx),
      });
      await expect(within).rejects.toThrow(problem);
    }
    expect(await recorded()).toBe(0);
  });
});

/** How many sessions wait for another transaction to end. */
async function waiting(database: TestDatabase): Promise<number> {
  const rows = await database.query(
    `SELECT FROM pg_stat_activity WHERE datname = $1 AND wait_event_type = 'Lock'`,
    [database.name],
  );
  return rows.length;
}
