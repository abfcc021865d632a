import { afterEach, describe, expect, it } from '@jest/globals';
import { Inject, Injectable, type OnModuleDestroy } from '@nestjs/common';
import { EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import { Test } from '@nestjs/testing';
import type { Delivered } from '../src/index.js';
import { migrateOutbox, OutboxModule, OutboxService, OutboxStore } from '../src/index.js';
import { InMemoryOutboxStore } from '../src/testing.js';
import { createDatabase } from './support/database.js';
import { RecordingLogger } from './support/logger.js';
import { startApp } from './support/outbox-app.js';
import { deferred, until, type Deferred } from './support/until.js';

const running: Deferred<void>[] = [];
const signals: AbortSignal[] = [];
class Listener {
  @OnEvent('slow')
  async slow({ _outbox }: Delivered): Promise<void> {
    const end = deferred();
    running.push(end);
    signals.push(_outbox.signal);
    await end.promise;
  }

  @OnEvent('fine')
  fine(): void {}
}
afterEach(() => {
  for (const end of running.splice(0)) end.resolve();
  signals.splice(0);
});

const slow = (count: number) =>
  Array.from({ length: count }, () => ({ eventType: 'slow', payload: {} }));

describe('a shutdown', () => {
  it('waits for listeners at work, and writes down what they did', async () => {
    const store = new InMemoryOutboxStore();
    await using app = await startApp({ outbox: { store, relay: {} }, providers: [Listener] });
    const { id } = await app.outbox.enqueue('slow', {});
    await until(() => running.length === 1, { what: 'it is at work' });
    let closed = false;
    const closing = app.close().then(() => (closed = true));
    await new Promise((resolve) => setImmediate(resolve));
    expect(closed).toBe(false);
    expect(signals[0]?.aborted).toBe(false);
    running[0]?.resolve();
    await closing;
    expect((await app.event(id)).status).toBe('COMPLETED');
  });

  it('ends within its time though a listener hangs; its event is given back and no attempt spent', async () => {
    const store = new InMemoryOutboxStore();
    await using app = await startApp({
      outbox: { store, relay: { shutdownTimeoutMs: 100 } },
      providers: [Listener],
    });
    const { id } = await app.outbox.enqueue('slow', {});
    await until(() => running.length === 1, { what: 'it hangs' });
    const startedAt = performance.now();
    await app.close();
    expect(performance.now() - startedAt).toBeLessThan(1_500);
    expect(await app.event(id)).toMatchObject({
      status: 'PENDING',
      retryCount: 0,
      lastError: null,
    });
    expect(signals[0]?.aborted).toBe(true);
    expect(signals[0]?.reason).toEqual(new Error('the process is shutting down'));

    // It comes to an end after all: that changes nothing.
    running[0]?.resolve();
    await new Promise((resolve) => setImmediate(resolve));
    expect((await app.event(id)).status).toBe('PENDING');
  });

  it('gives back what waits for a place, and no attempt is spent', async () => {
    const store = new InMemoryOutboxStore();
    await using app = await startApp({
      outbox: { store, relay: { concurrency: 2 } },
      providers: [Listener],
    });
    const events = await app.outbox.enqueueMany(slow(6));
    await until(() => running.length === 2, { what: 'two are at work' });
    expect(await app.outbox.stats()).toMatchObject({ processing: 6 });
    const closing = app.close();
    await until(async () => (await app.outbox.stats()).due === 4, { what: 'four are given back' });
    for (const end of running) end.resolve();
    await closing;
    const states = await Promise.all(events.map(({ id }) => app.event(id)));
    expect(states.filter(({ status }) => status === 'COMPLETED')).toHaveLength(2);
    expect(
      states.filter((event) => event.status === 'PENDING' && event.retryCount === 0),
    ).toHaveLength(4);
    expect(running).toHaveLength(2);
  });

  it('claims nothing new, also by hand', async () => {
    const store = new InMemoryOutboxStore();
    await using app = await startApp({ outbox: { store, relay: {} }, providers: [Listener] });
    await app.outbox.enqueue('slow', {});
    await until(() => running.length === 1, { what: 'it is at work' });
    const closing = app.close();
    await new Promise((resolve) => setImmediate(resolve));
    const { id } = await app.outbox.enqueue('fine', {});
    expect(await app.outbox.processPending()).toBe(0);
    running[0]?.resolve();
    await closing;
    expect((await app.event(id)).status).toBe('PENDING');
  });

  it('in the middle of a claim gives back what that claim brings', async () => {
    await using database = await createDatabase();
    await migrateOutbox({ database: database.pool });
    await using app = await startApp({
      outbox: { pool: database.pool, relay: { shutdownTimeoutMs: 5_000 } },
      providers: [Listener],
    });
    const { id } = await app.outbox.enqueue('fine', {}, {}, { delayMs: 200 });
    const blocker = await database.pool.connect();
    await blocker.query('BEGIN; LOCK TABLE outbox_events IN EXCLUSIVE MODE');
    const claims = (): Promise<unknown[]> =>
      database.query(
        `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
    await until(async () => (await claims()).length > 0, { what: 'a claim waits for the lock' });
    const closing = app.close();
    await new Promise((resolve) => setImmediate(resolve));
    await blocker.query('COMMIT');
    blocker.release();
    await closing;
    expect(
      await database.query('SELECT id, status, retry_count, lease_token FROM outbox_events'),
    ).toEqual([{ id, status: 'PENDING', retry_count: 0, lease_token: null }]);
  });

  it('waits for a pass by hand, in the middle of its claim too', async () => {
    await using database = await createDatabase();
    const { connectionString } = database;
    await using app = await startApp({
      outbox: { connectionString, migrate: true },
      providers: [Listener],
    });
    const { id } = await app.outbox.enqueue('fine', {});
    const blocker = await database.pool.connect();
    await blocker.query('BEGIN; LOCK TABLE outbox_events IN EXCLUSIVE MODE');
    const pass = app.outbox.processPending();
    const claims = (): Promise<unknown[]> =>
      database.query(
        `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
    await until(async () => (await claims()).length > 0, { what: 'the claim waits for the lock' });
    const closing = app.close();
    await new Promise((resolve) => setImmediate(resolve));
    await blocker.query('COMMIT');
    blocker.release();
    await closing;
    await pass;
    expect(
      await database.query('SELECT id, status, retry_count, lease_token FROM outbox_events'),
    ).toEqual([{ id, status: 'PENDING', retry_count: 0, lease_token: null }]);
  });

  it('stops the relay before any service of the application lets go of what listeners need', async () => {
    const log: string[] = [];
    @Injectable()
    class Database implements OnModuleDestroy {
      private open = true;

      query(): void {
        if (!this.open) throw new Error('the connection is closed');
        log.push('queried');
      }

      onModuleDestroy(): void {
        this.open = false;
        log.push('closed');
      }
    }
    @Injectable()
    class UsesDatabase {
      constructor(@Inject(Database) private readonly database: Database) {}

      @OnEvent('slow')
      async handle(): Promise<void> {
        const end = deferred();
        running.push(end);
        await end.promise;
        this.database.query();
      }
    }
    const store = new InMemoryOutboxStore();
    const outboxFirst = [OutboxModule.forRoot({ store }), EventEmitterModule.forRoot()];
    for (const imports of [outboxFirst, outboxFirst.toReversed()]) {
      log.splice(0);
      running.splice(0);
      const module = await Test.createTestingModule({
        imports,
        providers: [Database, UsesDatabase],
      })
        .setLogger(new RecordingLogger())
        .compile();
      await module.init();
      const { id } = await module.get(OutboxService).enqueue('slow', {});
      await until(() => running.length === 1, { what: 'it is at work' });
      const closing = module.close();
      await new Promise((resolve) => setImmediate(resolve));
      running[0]?.resolve();
      await closing;
      expect(log).toEqual(['queried', 'closed']);
      expect(await store.find(id)).toMatchObject({ status: 'COMPLETED' });
    }
  });

  it('can be asked for twice, at once or one after the other', async () => {
    await using database = await createDatabase();
    const module = await Test.createTestingModule({
      imports: [
        EventEmitterModule.forRoot(),
        OutboxModule.forRoot({
          connectionString: database.connectionString,
          migrate: true,
          relay: false,
        }),
      ],
    })
      .setLogger(new RecordingLogger())
      .compile();
    await module.init();
    await Promise.all([module.close(), module.close()]);
    await module.close();
  });

  it('leaves nothing running that would keep the process alive', async () => {
    const timers = (): number =>
      process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;
    const store = new InMemoryOutboxStore();
    await using app = await startApp({ outbox: { store, relay: {} }, providers: [Listener] });
    await app.outbox.enqueue('slow', {});
    await app.outbox.enqueue('fine', {}, {}, { delayMs: 10_000 });
    await until(() => running.length === 1, { what: 'it is at work' });
    const before = timers();
    const closing = app.close();
    running[0]?.resolve();
    await closing;
    expect(timers()).toBeLessThanOrEqual(before);
  });
});

describe('enqueue', () => {
  it('still works while the application shuts down', async () => {
    const store = new InMemoryOutboxStore();
    await using app = await startApp({ outbox: { store, relay: {} }, providers: [Listener] });
    await app.outbox.enqueue('slow', {});
    await until(() => running.length === 1, { what: 'it is at work' });
    const closing = app.close();
    expect(await app.outbox.enqueue('fine', {})).toMatchObject({ stored: true });
    running[0]?.resolve();
    await closing;
  });

  it('after the close is refused in words, and never emitted in memory', async () => {
    await using database = await createDatabase();
    await using app = await startApp({
      outbox: { connectionString: database.connectionString, migrate: true },
      providers: [Listener],
    });
    await app.close();
    const enqueue = app.outbox.enqueue('fine', {});
    await expect(enqueue).rejects.toMatchObject({ code: 'SHUTTING_DOWN' });
    await expect(enqueue).rejects.toThrow(
      /^the application is shutting down and the event could not be stored: /,
    );
    expect(app.log.messages('error')).toEqual([]);
  });

  it('after the close is still written within a transaction of the caller', async () => {
    await using database = await createDatabase();
    await using app = await startApp({
      outbox: { connectionString: database.connectionString, migrate: true },
      providers: [Listener],
    });
    await app.close();
    const client = await database.pool.connect();
    await client.query('BEGIN');
    expect(await app.outbox.enqueue('fine', {}, {}, { tx: client })).toMatchObject({
      stored: true,
    });
    await client.query('COMMIT');
    client.release();
    expect(await database.query('SELECT FROM outbox_events')).toHaveLength(1);
  });
});

it('a store of the application is closed with it', async () => {
  let closed = 0;
  class Store extends InMemoryOutboxStore {
    override async close(): Promise<void> {
      closed++;
    }
  }
  await using app = await startApp({ outbox: { store: new Store() } });
  expect(app.module.get(OutboxStore)).toBeInstanceOf(Store);
  await app.close();
  await app.close();
  expect(closed).toBe(1);
});
