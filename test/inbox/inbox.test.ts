import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { OnEvent } from '@nestjs/event-emitter';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import {
  type Delivered,
  migrateOutbox,
  OutboxInbox,
  type OutboxModuleOptions,
} from '../../src/index.js';
import { InMemoryOutboxStore } from '../../src/testing.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { startApp, type OutboxApp } from '../support/outbox-app.js';
import { deferred, until } from '../support/until.js';

const DAY_MS = 86_400_000;

describe.each([14, 18] as const)('the inbox on PostgreSQL %i', (major) => {
  let database: TestDatabase;
  let app: OutboxApp;
  let inbox: OutboxInbox;
  let id: string;

  beforeAll(async () => {
    database = await createDatabase(major);
    await migrateOutbox({ database: database.pool });
    await database.query('CREATE TABLE ledger (entry text)');
  });
  beforeEach(async () => {
    await database.query('TRUNCATE outbox_events, outbox_inbox, ledger');
    await start({});
    id = randomUUID();
  });
  afterEach(() => app.close());
  afterAll(() => database.drop());

  async function start(outbox: Partial<OutboxModuleOptions>, providers: unknown[] = []) {
    app = await startApp({
      outbox: { pool: database.pool, ...outbox },
      providers: providers as never,
    });
    inbox = app.module.get(OutboxInbox);
  }

  const ledger = async (): Promise<string[]> =>
    (await database.query<{ entry: string }>('SELECT entry FROM ledger ORDER BY 1')).map(
      ({ entry }) => entry,
    );
  const recorded = async (): Promise<object[]> =>
    database.query('SELECT event_id, consumer FROM outbox_inbox ORDER BY 1, 2');

  describe('once', () => {
    it('hands the work a pg client in a transaction, and answers whether it was done now', async () => {
      const work = async (client: pg.PoolClient) => {
        await client.query('INSERT INTO ledger VALUES ($1)', ['booked']);
        expect(await ledger()).toEqual([]);
      };
      expect(await inbox.once(id, 'ledger', work)).toBe(true);
      expect(await inbox.once(id, 'ledger', work)).toBe(false);
      expect(await inbox.once(id.toUpperCase(), 'ledger', work)).toBe(false);
      expect(await ledger()).toEqual(['booked']);
      expect(await recorded()).toEqual([{ event_id: id, consumer: 'ledger' }]);
    });

    it('knows consumers and events apart', async () => {
      const other = randomUUID();
      for (const [event, consumer] of [
        [id, 'a'],
        [id, 'b'],
        [other, 'a'],
        [id, 'A'],
      ] as const)
        expect(await inbox.once(event, consumer, () => {})).toBe(true);
      expect(await recorded()).toHaveLength(4);
    });

    it('rolls back work that fails, gives its connection back, and does the work the next time', async () => {
      for (let attempt = 1; attempt <= 12; attempt++) {
        const failing = inbox.once(id, 'ledger', async (client) => {
          await client.query('INSERT INTO ledger VALUES ($1)', ['booked']);
          throw new Error(`attempt ${attempt}`);
        });
        await expect(failing).rejects.toThrow(`attempt ${attempt}`);
      }
      expect(await ledger()).toEqual([]);
      expect(await recorded()).toEqual([]);
      expect(await inbox.once(id, 'ledger', () => {})).toBe(true);
    });

    it('takes caught errors of statements for failures: their COMMIT would roll back without a word', async () => {
      const failing = inbox.once(id, 'ledger', async (client) => {
        await client.query('INSERT INTO ledger VALUES ($1)', ['booked']);
        await client.query('SELECT 1/0', []).catch(() => {});
      });
      await expect(failing).rejects.toThrow('current transaction is aborted');
      expect(await ledger()).toEqual([]);
      expect(await recorded()).toEqual([]);
    });

    it('takes a transaction that the work has ended itself for a failure', async () => {
      for (const end of ['COMMIT', 'ROLLBACK']) {
        const failing = inbox.once(id, end, async (client) => {
          await client.query(end, []);
        });
        await expect(failing).rejects.toThrow('tx has no open transaction');
      }
      expect(await inbox.once(id, 'ROLLBACK', () => {})).toBe(true);
    });

    it('survives that the connection is cut in the middle of the work', async () => {
      const failing = inbox.once(id, 'ledger', async (client) => {
        (client as unknown as pg.PoolClient).on('error', () => {});
        const { rows } = await client.query('SELECT pg_backend_pid() AS pid', []);
        const { pid } = rows[0] as { pid: number };
        await database.query('SELECT pg_terminate_backend($1, 5000)', [pid]);
        await client.query('SELECT 1', []);
      });
      await expect(failing).rejects.toThrow();
      expect(await inbox.once(id, 'ledger', () => {})).toBe(true);
    });

    it.each(['succeeds', 'fails', 'dies'])(
      'of two deliveries at the same time one does the work, when the first %s',
      async (end) => {
        const atWork = deferred<number>();
        const go = deferred();
        const first = inbox
          .once(id, 'ledger', async (client) => {
            (client as unknown as pg.PoolClient).on('error', () => {});
            const { rows } = await client.query('SELECT pg_backend_pid() AS pid', []);
            await client.query('INSERT INTO ledger VALUES ($1)', ['first']);
            atWork.resolve((rows[0] as { pid: number }).pid);
            await go.promise;
            if (end === 'fails') throw new Error('no ink');
          })
          .catch(() => 'failed');
        const pid = await atWork.promise;
        const second = inbox.once(id, 'ledger', async (client) => {
          await client.query('INSERT INTO ledger VALUES ($1)', ['second']);
        });
        await until(
          async () =>
            (
              await database.query(
                `SELECT FROM pg_stat_activity WHERE datname = $1 AND wait_event_type = 'Lock'`,
                [database.name],
              )
            ).length === 1,
          { what: 'the second waits for the first' },
        );
        if (end === 'dies') await database.query('SELECT pg_terminate_backend($1, 5000)', [pid]);
        go.resolve();
        const succeeds = end === 'succeeds';
        expect(await first).toBe(succeeds ? true : 'failed');
        expect(await second).toBe(!succeeds);
        expect(await ledger()).toEqual([succeeds ? 'first' : 'second']);
      },
    );

    it('of twenty deliveries at the same time one does the work', async () => {
      const answers = await Promise.all(
        Array.from({ length: 20 }, () =>
          inbox.once(id, 'ledger', (client) =>
            client.query('INSERT INTO ledger VALUES ($1)', ['booked']),
          ),
        ),
      );
      expect(answers.filter(Boolean)).toHaveLength(1);
      expect(await ledger()).toEqual(['booked']);
    });

    it('says so if the transaction it was given does not call back', async () => {
      const once = inbox.once(id, 'ledger', () => {}, { transaction: async () => {} });
      await expect(once).rejects.toThrow('options.transaction must call what it is given');
    });
  });

  describe('record', () => {
    it('needs a transaction: a record of its own would outlive work that fails', async () => {
      for (const choice of [{}, { tx: 'none' as const }])
        await expect(inbox.record(id, 'ledger', choice)).rejects.toThrow(
          'there is no transaction to record in: pass yours as tx, or let once() begin one of its own',
        );
      await expect(inbox.record(id, 'ledger', { tx: undefined })).rejects.toThrow(
        'tx is undefined',
      );
      expect(await recorded()).toEqual([]);
    });

    it.each(['REPEATABLE READ', 'SERIALIZABLE'])(
      'in a %s transaction that began before another did the event, it fails rather than guess',
      async (level) => {
        const client = await database.pool.connect();
        try {
          await client.query(`BEGIN ISOLATION LEVEL ${level}`);
          await client.query('SELECT count(*) FROM ledger');
          await inbox.once(id, 'ledger', () => {});
          await expect(inbox.record(id, 'ledger', { tx: client })).rejects.toMatchObject({
            code: '40001',
          });
        } finally {
          await client.query('ROLLBACK');
          client.release();
        }
      },
    );

    it('takes the current transaction, if the module was told how to find it', async () => {
      await app.close();
      const client = await database.pool.connect();
      try {
        await start({ currentTransaction: () => client });
        await client.query('BEGIN');
        expect(await inbox.record(id, 'ledger')).toBe(true);
        expect(await recorded()).toEqual([]);
        await client.query('COMMIT');
        expect(await recorded()).toHaveLength(1);
      } finally {
        client.release();
      }
    });
  });

  it.each<[string, unknown, unknown, string]>([
    [
      'an event without an id',
      {},
      'a',
      'event must be what the listener received (with _outbox.id)',
    ],
    ['an ordinary event', { _outbox: {} }, 'a', 'event must be what the listener received'],
    ['an id that is none', '42', 'a', 'the id of an event, a UUID, got "42"'],
    ['nothing', undefined, 'a', 'event must be what the listener received'],
    ['no consumer', randomUUID(), undefined, 'consumer must be a name of 1 to 255 characters'],
    ['an empty consumer', randomUUID(), ' ', 'consumer must be a name of 1 to 255 characters'],
    ['a long consumer', randomUUID(), 'x'.repeat(256), 'consumer must be a name'],
    ['a consumer with NUL', randomUUID(), 'a\0', 'consumer must be a name'],
  ])('refuses %s', async (_, event, consumer, message) => {
    await expect(inbox.once(event as never, consumer as never, () => {})).rejects.toThrow(message);
    await expect(inbox.record(event as never, consumer as never)).rejects.toThrow(message);
    await expect(inbox.once(event as never, consumer as never, () => {})).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    });
  });

  it('makes what a listener does in the database happen once, however often it is called', async () => {
    let calls = 0;
    class Bookkeeper {
      @OnEvent('order.paid')
      async book(event: Delivered<'order.paid'>): Promise<void> {
        calls++;
        await app.module.get(OutboxInbox).once(event, 'ledger', async (client) => {
          await client.query('INSERT INTO ledger VALUES ($1)', [event['order']]);
        });
      }
    }
    await app.close();
    await start({}, [Bookkeeper]);
    const { id: eventId } = await app.outbox.enqueue('order.paid', { order: 'A-1' });
    await app.outbox.processPending();
    // As a crash leaves it that comes after the work and before its success is stored.
    await database.query(
      `UPDATE outbox_events SET status = 'PENDING', processed_at = NULL, acknowledged_by = '{}'`,
    );
    await app.outbox.processPending();
    expect(calls).toBe(2);
    expect(await ledger()).toEqual(['A-1']);
    expect((await app.event(eventId)).status).toBe('COMPLETED');
  });

  describe('pruning', () => {
    const remember = async (daysAgo: number, status?: string): Promise<string> => {
      const eventId = randomUUID();
      if (status !== undefined) {
        await database.query(
          `INSERT INTO outbox_events (id, event_type, payload, status, processed_at, lease_token, leased_until)
           VALUES ($1, 'a', '{}', $2::text, CASE WHEN $2::text IN ('COMPLETED', 'FAILED') THEN now() END,
                   CASE WHEN $2::text = 'PROCESSING' THEN gen_random_uuid() END,
                   CASE WHEN $2::text = 'PROCESSING' THEN now() END)`,
          [eventId, status],
        );
      }
      await database.query(
        `INSERT INTO outbox_inbox VALUES ($1, 'ledger', now() - $2 * interval '1 day')`,
        [eventId, daysAgo],
      );
      return eventId;
    };
    const remembered = async (): Promise<unknown[]> =>
      (await database.query('SELECT event_id FROM outbox_inbox ORDER BY handled_at')).map(
        (row) => row['event_id'] as unknown,
      );

    it('forgets after 30 days, but not what can still be delivered', async () => {
      const failed = await remember(1_000, 'FAILED');
      const waiting = await remember(900, 'PENDING');
      const underWay = await remember(800, 'PROCESSING');
      await remember(700, 'COMPLETED');
      await remember(31);
      const young = await remember(29, 'COMPLETED');
      const elsewhere = await remember(28);
      expect(await app.outbox.deleteProcessed()).toEqual({ completed: 0, failed: 0, inbox: 2 });
      expect(await remembered()).toEqual([failed, waiting, underWay, young, elsewhere]);
    });

    it('forgets a dead letter with the event itself', async () => {
      const failed = await remember(100, 'FAILED');
      await app.deadLetters.discard(failed);
      expect(await app.outbox.deleteProcessed()).toEqual({ completed: 0, failed: 0, inbox: 1 });
    });

    it.each<[number | false, number]>([
      [false, 0],
      [2 * DAY_MS, 1],
      [0, 2],
    ])('with inboxMs: %p it forgets as told', async (inboxMs, inbox_) => {
      await app.close();
      await start({ retention: { inboxMs } });
      await remember(1);
      await remember(3);
      expect((await app.outbox.deleteProcessed()).inbox).toBe(inbox_);
    });

    it('goes on until nothing is left to forget', async () => {
      await database.query(
        `INSERT INTO outbox_inbox SELECT gen_random_uuid(), 'a', now() - interval '31 days' FROM generate_series(1, 2500)`,
      );
      expect((await app.outbox.deleteProcessed()).inbox).toBe(2_500);
    });
  });

  it('lies in the schema and under the name that were configured', async () => {
    await app.close();
    const names = { schema: 'billing', table: 'paid_events' };
    await migrateOutbox({ database: database.pool, ...names });
    await start(names);
    expect(await inbox.once(id, 'ledger', () => {})).toBe(true);
    expect(await inbox.once(id, 'ledger', () => {})).toBe(false);
    expect(await database.query('SELECT event_id FROM billing.paid_inbox')).toEqual([
      { event_id: id },
    ]);
    expect(await recorded()).toEqual([]);
    await database.query(`UPDATE billing.paid_inbox SET handled_at = '2020-01-01'`);
    expect((await app.outbox.deleteProcessed()).inbox).toBe(1);
  });
});

it('the inbox and the in-memory store do not go together', async () => {
  await using app = await startApp({ outbox: { store: new InMemoryOutboxStore() } });
  const inbox = app.module.get(OutboxInbox);
  for (const call of [
    inbox.once(randomUUID(), 'ledger', () => {}),
    inbox.record(randomUUID(), 'ledger'),
  ])
    await expect(call).rejects.toMatchObject({
      code: 'SETUP',
      message: expect.stringContaining('the inbox needs events to rest in PostgreSQL'),
    });
  expect(await app.outbox.deleteProcessed()).toEqual({ completed: 0, failed: 0, inbox: 0 });
});

it.each([[-1], ['30d'], [Number.NaN]])('retention.inboxMs: %p is refused', async (inboxMs) => {
  const outbox = { store: new InMemoryOutboxStore(), retention: { inboxMs } } as never;
  await expect(startApp({ outbox })).rejects.toThrow('retention.inboxMs must be a whole number');
});
