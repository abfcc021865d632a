import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { OnEvent } from '@nestjs/event-emitter';
import {
  migrateOutbox,
  OutboxError,
  type OutboxTransaction,
  type StoredEvent,
} from '../../src/index.js';
import { openTransaction } from '../../src/transaction/outbox-transaction.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { startApp, type OutboxApp } from '../support/outbox-app.js';
import { deferred, until } from '../support/until.js';
import type { OpenTool, Tool } from './tools/tool.js';

const ID = '11111111-1111-4111-8111-111111111111';

/** What each of the tools and drivers has been known to spoil. */
const HAIRY = {
  empty: [],
  nested: [[], [[]], [{ a: [1, 2] }], {}],
  list: [1, 2, 3],
  number: '10.5',
  json: '{"a":1}',
  quoted: `"'\\"'"`,
  'a ? b ?? c': '? ?? $1 $2 :name ::text @p1 %s',
  $1: ':id',
  ':name': '$1',
  unicode: 'Ünïcödé 견적 요청 👍🏽 \u2028 \u0001',
  big: 9007199254740991,
  small: -1.5e-7,
  nothing: null,
  truth: [true, false],
  constructor: { prototype: { x: 1 } },
  ...(JSON.parse('{"__proto__":{"isAdmin":true}}') as object),
};

/** What must hold for an enqueue in a transaction of any tool. */
export function transactionSuite(tool: Tool): void {
  describe(`tx is a transaction of ${tool.name}`, () => {
    let database: TestDatabase;
    let open: OpenTool;
    let app: OutboxApp;
    const heard: Record<string, unknown>[] = [];

    class Listener {
      @OnEvent('a')
      handle(event: Record<string, unknown>): void {
        heard.push(event);
      }
    }

    beforeAll(async () => {
      database = await createDatabase(tool.major);
      await migrateOutbox({ database: database.pool });
      await database.query('CREATE TABLE quotes (id integer PRIMARY KEY)');
      open = await tool.open(database);
    });
    beforeEach(async () => {
      await database.query('TRUNCATE outbox_events, quotes');
      app = await startApp({ outbox: { pool: database.pool }, providers: [Listener] });
      heard.splice(0);
    });
    afterEach(() => app.close());
    afterAll(async () => {
      await open.close();
      await database.drop();
    });

    const count = async (table: 'outbox_events' | 'quotes'): Promise<number> =>
      Number((await database.query(`SELECT count(*) FROM ${table}`))[0]?.['count']);
    const stored = (): Promise<number> => count('outbox_events');
    const enqueue = (tx: OutboxTransaction, payload: Record<string, unknown> = {}) =>
      app.outbox.enqueue('a', payload, {}, { tx });

    it('committed, the event is there with the data; before that nobody sees either', async () => {
      await open.transaction(async (tx) => {
        await open.insertQuote(tx, 1);
        expect(await enqueue(tx, { n: 1 })).toEqual({ id: expect.any(String), stored: true });
        expect(await stored()).toBe(0);
        expect(await app.outbox.processPending()).toBe(0);
      });
      expect(await stored()).toBe(1);
      expect(await count('quotes')).toBe(1);
      expect(await app.outbox.processPending()).toBe(1);
      expect(heard).toEqual([expect.objectContaining({ n: 1 })]);
    });

    it('rolled back, there is neither', async () => {
      const rolledBack = open.transaction(async (tx) => {
        await open.insertQuote(tx, 1);
        await enqueue(tx);
        await app.outbox.enqueueMany([{ eventType: 'a', payload: {} }], { tx });
        throw new Error('the supplier is on holiday');
      });
      await expect(rolledBack).rejects.toThrow('the supplier is on holiday');
      expect(await stored()).toBe(0);
      expect(await count('quotes')).toBe(0);
      expect(heard).toEqual([]);
    });

    it('the event may come before the data', async () => {
      await open.transaction(async (tx) => {
        await enqueue(tx);
        expect(await stored()).toBe(0);
        await open.insertQuote(tx, 1);
      });
      expect(await stored()).toBe(1);

      const rolledBack = open.transaction(async (tx) => {
        await enqueue(tx);
        throw new Error('changed my mind');
      });
      await expect(rolledBack).rejects.toThrow('changed my mind');
      expect(await stored()).toBe(1);
    });

    it('rolled back to a savepoint, what was enqueued since is gone, and the rest stays', async () => {
      await open.transaction(async (tx) => {
        await enqueue(tx, { n: 'before' });
        await open.nested(tx, (nested) => enqueue(nested, { n: 'nested' }));
        const undone = open.nested(tx, async (nested) => {
          await enqueue(nested, { n: 'undone' });
          throw new Error('undo');
        });
        await expect(undone).rejects.toThrow('undo');
        await enqueue(tx, { n: 'after' });
      });
      const rows = await database.query(`SELECT payload->>'n' AS n FROM outbox_events ORDER BY 1`);
      expect(rows.map(({ n }) => n as unknown)).toEqual(['after', 'before', 'nested']);
    });

    it('rolled back as a whole, what was enqueued in a savepoint that succeeded is gone too', async () => {
      const rolledBack = open.transaction(async (tx) => {
        await open.nested(tx, (nested) => enqueue(nested));
        throw new Error('all of it');
      });
      await expect(rolledBack).rejects.toThrow('all of it');
      expect(await stored()).toBe(0);
    });

    it('the payload arrives as it was, in the types of the table', async () => {
      await open.transaction((tx) => enqueue(tx, HAIRY));
      await app.outbox.enqueue('a', HAIRY);
      const rows = await database.query(
        `SELECT payload::text, jsonb_typeof(payload) AS whole, jsonb_typeof(payload->'empty') AS empty,
                jsonb_typeof(payload->'list') AS list, jsonb_typeof(payload->'number') AS number,
                jsonb_typeof(payload->'json') AS json, jsonb_typeof(metadata) AS metadata
         FROM outbox_events`,
      );
      expect(rows[0]).toMatchObject({
        whole: 'object',
        empty: 'array',
        list: 'array',
        number: 'string',
        json: 'string',
        metadata: 'object',
      });
      expect(rows[0]).toEqual(rows[1]);

      await app.outbox.processPending();
      for (const event of heard) {
        const { _outbox, ...payload } = event;
        expect(JSON.stringify(sorted(payload))).toBe(JSON.stringify(sorted(HAIRY)));
        expect('isAdmin' in event).toBe(false);
      }
      expect(heard).toHaveLength(2);
    });

    it('many events go in one statement, with when, id and metadata', async () => {
      const scheduledAt = new Date('2031-02-03T04:05:06.789Z');
      const answer = await open.transaction((tx) =>
        app.outbox.enqueueMany(
          [
            { eventType: 'a', payload: HAIRY, metadata: { m: ['?', '$1'] }, scheduledAt, id: ID },
            { eventType: 'b', payload: {}, delayMs: 60_000 },
            { eventType: 'c', payload: {}, metadata: undefined, id: undefined, delayMs: undefined },
          ],
          { tx },
        ),
      );
      expect(answer).toEqual([
        { id: ID, stored: true },
        { id: expect.any(String), stored: true },
        { id: expect.any(String), stored: true },
      ]);
      const events = await Promise.all(answer.map(({ id }) => app.event(id)));
      const [first, second, third] = events as [StoredEvent, StoredEvent, StoredEvent];
      expect(first).toMatchObject({ eventType: 'a', metadata: { m: ['?', '$1'] }, scheduledAt });
      expect(second).toMatchObject({ eventType: 'b', metadata: {}, status: 'PENDING' });
      expect(second.scheduledAt.getTime() - second.createdAt.getTime()).toBe(60_000);
      expect(third.scheduledAt).toEqual(third.createdAt);
    });

    it('one event too, with when, id and metadata', async () => {
      await open.transaction(async (tx) => {
        await app.outbox.enqueue('a', {}, { m: [] }, { tx, id: ID, delayMs: 1_500.5 });
      });
      const event = await app.event(ID);
      expect(event.metadata).toEqual({ m: [] });
      expect([1_500, 1_501]).toContain(event.scheduledAt.getTime() - event.createdAt.getTime());
    });

    it('is usable after the same id came a second time, and after wrong input', async () => {
      await open.transaction(async (tx) => {
        await app.outbox.enqueue('a', {}, {}, { tx, id: ID });
        expect(await app.outbox.enqueue('a', {}, {}, { tx, id: ID })).toEqual({
          id: ID,
          stored: true,
          duplicate: true,
        });
        for (const payload of [{ s: 'a\0b' }, { s: '\ud83d' }, { n: Number.NaN }, [1, 2]])
          await expect(enqueue(tx, payload as never)).rejects.toThrow(OutboxError);
        await expect(app.outbox.enqueue('error', {}, {}, { tx })).rejects.toThrow(OutboxError);
        await open.insertQuote(tx, 1);
      });
      expect(await stored()).toBe(1);
      expect(await count('quotes')).toBe(1);
    });

    it('in a transaction that has failed already, the failure is thrown and nothing is emitted', async () => {
      const failed = open.transaction(async (tx) => {
        await open.insertQuote(tx, 1);
        await expect(open.fail(tx)).rejects.toThrow();
        await expect(enqueue(tx)).rejects.toThrow(/aborted|25P02/);
        throw new Error('as it should be');
      });
      await expect(failed).rejects.toThrow();
      expect(await stored()).toBe(0);
      expect(heard).toEqual([]);
      expect(app.log.messages('error')).toEqual([]);
    });

    it('an enqueue that fails is thrown and not emitted', async () => {
      await database.query('ALTER FUNCTION outbox_enqueue_one RENAME TO outbox_mislaid');
      try {
        const failed = open.transaction(async (tx) => {
          await open.insertQuote(tx, 1);
          await enqueue(tx);
        });
        await expect(failed).rejects.toThrow(/outbox_enqueue/);
      } finally {
        await database.query('ALTER FUNCTION outbox_mislaid RENAME TO outbox_enqueue_one');
      }
      expect(await count('quotes')).toBe(0);
      expect(heard).toEqual([]);
      expect(app.log.messages('error')).toEqual([]);
    });

    it.each(['committed', 'rolled back'])('is refused once it is %s', async (end) => {
      let finished: OutboxTransaction | undefined;
      const ended = open.transaction(async (tx) => {
        finished = tx;
        await open.insertQuote(tx, 1);
        if (end === 'rolled back') throw new Error('rolled back');
      });
      await ended.catch(() => {});
      const late = enqueue(finished as OutboxTransaction);
      await expect(late).rejects.toThrow(
        /^tx (has no open transaction|is an EntityManager of MikroORM outside a transaction)/,
      );
      await expect(late).rejects.toThrow(tool.whatToPass);
      await expect(late).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
      expect(await stored()).toBe(0);
      expect(heard).toEqual([]);
    });

    it('an enqueue that nobody awaited is part of the transaction, or refused: never written beside it', async () => {
      for (let round = 0; round < 10; round++) {
        let forgotten: Promise<unknown> | undefined;
        const rolledBack = open.transaction(async (tx) => {
          await open.insertQuote(tx, 1);
          forgotten = settled(enqueue(tx));
          throw new Error('rolled back');
        });
        await expect(rolledBack).rejects.toThrow();
        await forgotten;
        expect(await stored()).toBe(0);
      }
    });

    it('what is no open transaction is refused, by its name and before anything is written', async () => {
      expect(open.mistakes.length).toBeGreaterThan(0);
      for (const [what, thing, problem] of open.mistakes) {
        const refused = app.outbox.enqueue('a', {}, {}, { tx: thing() as OutboxTransaction });
        await expect(
          refused.catch((error: Error) => `${what}: ${error.message}`),
        ).resolves.toContain(`${what}: ${problem}`);
        await expect(refused).rejects.toThrow(tool.whatToPass);
        await expect(refused).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
      }
      expect(await stored()).toBe(0);
      expect(heard).toEqual([]);
    });

    it('two of them that enqueue do not wait for each other', async () => {
      const secondIsDone = deferred();
      const first = open.transaction(async (tx) => {
        await open.insertQuote(tx, 1);
        await enqueue(tx, { n: 'first' });
        await secondIsDone.promise;
      });
      await open.transaction(async (tx) => {
        await open.insertQuote(tx, 2);
        await enqueue(tx, { n: 'second' });
      });
      expect(await stored()).toBe(1);
      secondIsDone.resolve();
      await first;
      expect(await stored()).toBe(2);
    });

    it(`${tool.tellsItsEnd ? 'tells' : 'does not tell'} when it has ended, nested ones apart`, async () => {
      let ended = 0;
      const watch = async (tx: OutboxTransaction): Promise<void> => {
        const { onEnd } = await openTransaction(tx);
        expect(onEnd(() => ended++)).toBe(tool.tellsItsEnd);
      };
      await open.transaction(async (tx) => {
        await watch(tx);
        await open.nested(tx, watch);
        await open.insertQuote(tx, 1);
        expect(ended).toBe(0);
      });
      const expected = tool.tellsItsEnd ? 2 : 0;
      await until(() => ended === expected, { what: 'both are told' });
      await expect(
        open.transaction(async (tx) => {
          await watch(tx);
          throw new Error('rolled back');
        }),
      ).rejects.toThrow('rolled back');
      await until(() => ended === expected * 1.5, { what: 'the third is told' });
    });

    it('wakes the relay once it is committed', async () => {
      await using relaying = await startApp({
        outbox: { pool: database.pool, relay: {} },
        providers: [Listener],
      });
      await untilAwake(database, relaying, heard);
      await open.transaction(async (tx) => {
        await relaying.outbox.enqueue('a', { n: 1 }, {}, { tx });
        await open.insertQuote(tx, 1);
        expect(heard).toEqual([]);
      });
      // Nothing ticks in this application: it is woken, or never hears of it.
      await until(() => heard.length > 0, { what: 'the listener hears of it', timeoutMs: 5_000 });
    });
  });
}

/** Until a relay that has just started has done what wakes it then: nothing but an enqueue wakes it after that. */
export async function untilAwake(
  database: TestDatabase,
  app: OutboxApp,
  heard: unknown[],
): Promise<void> {
  const listening = async () =>
    (
      await database.query(
        `SELECT FROM pg_stat_activity WHERE datname = $1 AND query LIKE 'LISTEN%' AND state = 'idle'`,
        [database.name],
      )
    ).length > 0;
  await until(listening, { what: 'the relay listens' });
  const { id } = await app.outbox.enqueue('a', {});
  await app.eventIn('COMPLETED', id);
  heard.splice(0);
}

async function settled(promise: Promise<unknown>): Promise<unknown> {
  return promise.catch((error: unknown) => error);
}

/** As jsonb keeps an object: without the order of its keys. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.entries(value)
    .map(([key, item]) => [key, sorted(item)])
    .toSorted(([a], [b]) => (String(a) < String(b) ? -1 : 1));
}
