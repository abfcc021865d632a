import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { OnEvent } from '@nestjs/event-emitter';
import pg from 'pg';
import { migrateOutbox, OutboxService, type Delivered } from '../src/index.js';
import { createDatabase, type TestDatabase } from './support/database.js';
import { startApp, type OutboxApp } from './support/outbox-app.js';
import { age } from './support/resting-place.js';
import { deferred, until, type Deferred } from './support/until.js';

// Several relays on one database; and what one relay does with a table that is in a bad way.

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase();
  await migrateOutbox({ database: database.pool });
});
beforeEach(async () => {
  await database.query('TRUNCATE outbox_events');
});
afterAll(() => database.drop());

/** A listener that waits to be told how to end. */
class Probe {
  readonly calls: Deferred<void>[] = [];

  @OnEvent('a')
  async handle(): Promise<void> {
    const call = deferred();
    this.calls.push(call);
    await call.promise;
  }
}

async function startWithProbe(): Promise<{ app: OutboxApp; probe: Probe }> {
  const app = await startApp({ outbox: { pool: database.pool }, providers: [Probe] });
  return { app, probe: app.module.get(Probe) };
}

describe('a late finisher', () => {
  /** A holds the event, loses its lease to the reaper, and B has claimed it since. */
  async function takeOver() {
    const a = await startWithProbe();
    const b = await startWithProbe();
    const { id } = await a.app.outbox.enqueue('a', {});
    const passOfA = a.app.outbox.processPending();
    await until(() => a.probe.calls.length === 1, { what: 'A is at work' });
    await age(database, HOUR_MS);
    expect(await b.app.outbox.reap()).toBe(1);
    expect(await b.app.event(id)).toMatchObject({ status: 'PENDING', retryCount: 1 });
    await age(database, 2 * MINUTE_MS);
    const passOfB = b.app.outbox.processPending();
    await until(() => b.probe.calls.length === 1, { what: 'B is at work' });
    const close = async (): Promise<void> => {
      for (const call of [...a.probe.calls, ...b.probe.calls]) call.resolve();
      await a.app.close();
      await b.app.close();
    };
    return { id, a, b, passOfA, passOfB, [Symbol.asyncDispose]: close };
  }

  it('that succeeds changes nothing: the event follows whoever holds it', async () => {
    await using race = await takeOver();
    const { id, a, b } = race;
    const held = await database.query('SELECT * FROM outbox_events');
    a.probe.calls[0]?.resolve();
    await race.passOfA;
    expect(await database.query('SELECT * FROM outbox_events')).toEqual(held);
    // Nest has one logger for a process: that of the application started last.
    expect(b.app.log.messages('warn')).toContain(
      `a ${id}: the lease was lost to another process, this one's outcome is not stored`,
    );

    b.probe.calls[0]?.reject(new Error('of B'));
    await race.passOfB;
    expect(await b.app.event(id)).toMatchObject({
      status: 'PENDING',
      retryCount: 2,
      lastError: 'Probe.handle: of B',
      acknowledgedBy: [],
    });
  });

  it('that fails after the other has succeeded changes nothing', async () => {
    await using race = await takeOver();
    race.b.probe.calls[0]?.resolve();
    await race.passOfB;
    const done = await race.b.app.event(race.id);
    expect(done.status).toBe('COMPLETED');
    race.a.probe.calls[0]?.reject(new Error('of A'));
    await race.passOfA;
    expect(await race.b.app.event(race.id)).toEqual(done);
  });
});

it('many relays at once deliver each event once', async () => {
  const heard: number[] = [];
  class Counter {
    @OnEvent('n')
    handle({ n }: { n: number } & Delivered): void {
      heard.push(n);
    }
  }
  const apps = await Promise.all(
    Array.from({ length: 4 }, () =>
      startApp({ outbox: { pool: database.pool, relay: { batchSize: 7 } }, providers: [Counter] }),
    ),
  );
  const [first] = apps as [OutboxApp];
  for (let batch = 0; batch < 10; batch++) {
    await first.outbox.enqueueMany(
      Array.from({ length: 30 }, (_, n) => ({ eventType: 'n', payload: { n: batch * 30 + n } })),
    );
    await Promise.all(apps.map(async ({ outbox }) => outbox.processPending(5)));
  }
  await until(
    async () =>
      (await database.query(`SELECT FROM outbox_events WHERE status <> 'COMPLETED'`)).length === 0,
    { what: 'all are done' },
  );
  expect(heard.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 300 }, (_, n) => n));
  for (const app of apps) await app.close();
});

describe('events that always fail', () => {
  it('do not starve those behind them, and nothing spins on them', async () => {
    const calls = new Map<string, number>();
    class Listener {
      @OnEvent('poison')
      poison({ _outbox }: Delivered): void {
        calls.set(_outbox.id, (calls.get(_outbox.id) ?? 0) + 1);
        throw new Error('poison');
      }

      @OnEvent('fine')
      fine(): void {}
    }
    let statements = 0;
    const pool = new Proxy(database.pool, {
      get(target, property) {
        if (property === 'query') statements++;
        const value = Reflect.get(target, property) as unknown;
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    await using app = await startApp({
      outbox: { pool, relay: { batchSize: 10 } },
      providers: [Listener],
    });
    const due = (n: number): Date => new Date(Date.now() - HOUR_MS + n * 1_000);
    await app.outbox.enqueueMany([
      ...Array.from({ length: 25 }, (_, n) => ({
        eventType: 'poison',
        payload: {},
        scheduledAt: due(n),
      })),
      ...Array.from({ length: 5 }, (_, n) => ({
        eventType: 'fine',
        payload: {},
        scheduledAt: due(100 + n),
      })),
    ]);
    await until(
      async () =>
        (await database.query(`SELECT FROM outbox_events WHERE status = 'COMPLETED'`)).length === 5,
      { what: 'the five are done' },
    );
    await until(async () => (await app.outbox.stats()).processing === 0, { what: 'all is quiet' });
    const before = statements;
    expect(before).toBeLessThan(60);
    expect([...calls.values()]).toEqual(Array.from({ length: 25 }, () => 1));
    // A relay that spins would have asked again by the time another event has gone through.
    const { id } = await app.outbox.enqueue('fine', {}, {}, { delayMs: 300 });
    await app.eventIn('COMPLETED', id);
    expect(statements - before).toBeLessThan(60);
    expect([...calls.values()]).toEqual(Array.from({ length: 25 }, () => 1));
  });

  it.each<[string, string, string]>([
    ['an array as payload', `payload = '[1, 2]'`, 'the stored payload is not a JSON object: [1,2]'],
    ['a text as payload', `payload = '"text"'`, 'the stored payload is not a JSON object: "text"'],
    ['null as payload', `payload = 'null'`, 'the stored payload is not a JSON object: null'],
    ['the type error', `event_type = 'error'`, 'has a meaning of its own to the emitter'],
    ['the type newListener', `event_type = 'newListener'`, 'has a meaning of its own'],
    ['the type constructor', `event_type = 'constructor'`, 'that every JavaScript object has'],
    ['an empty type', `event_type = ''`, 'eventType must not be empty'],
  ])('because somebody edited the row fail alone, in words: %s', async (_, edit, message) => {
    const heard: unknown[] = [];
    class Listener {
      @OnEvent('a')
      @OnEvent('error')
      handle(event: unknown): void {
        heard.push(event);
      }
    }
    await using app = await startApp({ outbox: { pool: database.pool }, providers: [Listener] });
    const [bad, ...good] = await app.outbox.enqueueMany(
      Array.from({ length: 4 }, () => ({ eventType: 'a', payload: {} })),
    );
    await database.query(`UPDATE outbox_events SET ${edit} WHERE id = $1`, [bad?.id]);
    for (let pass = 0; pass < 2; pass++) await app.outbox.processPending();
    const event = await app.event(bad?.id ?? '');
    expect(event).toMatchObject({ status: 'PENDING', retryCount: 1 });
    expect(event.lastError).toContain(message);
    for (const { id } of good) expect((await app.event(id)).status).toBe('COMPLETED');
    expect(heard).toHaveLength(3);
  });

  it('metadata that somebody edited reaches the listener as it is', async () => {
    const heard: unknown[] = [];
    class Listener {
      @OnEvent('a')
      handle({ _outbox }: Delivered): void {
        heard.push(_outbox.metadata);
      }
    }
    await using app = await startApp({ outbox: { pool: database.pool }, providers: [Listener] });
    await app.outbox.enqueue('a', {});
    await database.query(`UPDATE outbox_events SET metadata = '[1]'`);
    await app.outbox.processPending();
    expect(heard).toEqual([[1]]);
  });
});

describe('a pool of one connection, shared by application and outbox', () => {
  it('is enough: listeners use it, enqueue more, and enqueue in a transaction on it', async () => {
    const pool = new pg.Pool({ connectionString: database.connectionString, max: 1 });
    pool.on('error', () => {});
    let done = 0;
    class Listener {
      constructor(private readonly outbox: () => OutboxService) {}

      @OnEvent('first')
      async first({ n }: { n: number } & Delivered): Promise<void> {
        await pool.query('SELECT 1');
        await this.outbox().enqueue('second', { n });
        const client = await pool.connect();
        try {
          await client.query('BEGIN');
          await this.outbox().enqueue('third', { n }, {}, { tx: client });
          await client.query('COMMIT');
        } finally {
          client.release();
        }
      }

      @OnEvent('second')
      @OnEvent('third')
      async later(): Promise<void> {
        await pool.query('SELECT 1');
        done++;
      }
    }
    {
      await using app: OutboxApp = await startApp({
        outbox: { pool, relay: { concurrency: 10 } },
        providers: [{ provide: Listener, useFactory: () => new Listener(() => app.outbox) }],
      });
      await app.outbox.enqueueMany(
        Array.from({ length: 20 }, (_, n) => ({ eventType: 'first', payload: { n } })),
      );
      await until(() => done === 40, { what: 'all have been called' });
      await until(
        async () =>
          (await database.query(`SELECT FROM outbox_events WHERE status <> 'COMPLETED'`)).length ===
          0,
        { what: 'all are done' },
      );
    }
    await pool.end();
    const [row] = await database.query('SELECT max(retry_count) AS most FROM outbox_events');
    expect(row).toEqual({ most: 0 });
  });

  it('that is busy for too long: the relay says so, goes on later, and no attempt is spent', async () => {
    const pool = new pg.Pool({
      connectionString: database.connectionString,
      max: 1,
      connectionTimeoutMillis: 200,
    });
    pool.on('error', () => {});
    class Listener {
      @OnEvent('a')
      handle(): void {}
    }
    {
      await using app = await startApp({ outbox: { pool }, providers: [Listener] });
      const { id } = await app.outbox.enqueue('a', {});
      const busy = await pool.connect();
      await expect(app.outbox.processPending()).rejects.toThrow(/timeout/);
      busy.release();
      expect(await app.outbox.processPending()).toBe(1);
      expect(await app.event(id)).toMatchObject({ status: 'COMPLETED', retryCount: 0 });
    }
    {
      await using app = await startApp({ outbox: { pool, relay: {} }, providers: [Listener] });
      const busy = await pool.connect();
      // Written beside the pool, so that only the relay meets it.
      await database.query(
        `INSERT INTO outbox_events (event_type, payload, scheduled_at) VALUES ('a', '{}', now())`,
      );
      await app.outbox.enqueue('b', {}).catch(() => {});
      await app.deadLetters.redrive({}).catch(() => {});
      busy.release();
      await app.outbox.enqueue('a', {});
      await until(
        async () =>
          (
            await database.query(
              `SELECT FROM outbox_events WHERE event_type = 'a' AND status <> 'COMPLETED'`,
            )
          ).length === 0,
        { what: 'all are done' },
      );
    }
    await pool.end();
  });
});
