import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  it,
  jest,
} from '@jest/globals';
import { OnEvent } from '@nestjs/event-emitter';
import { migrateOutbox } from '../src/index.js';
import { createDatabase, type TestDatabase } from './support/database.js';
import { startApp, type OutboxApp } from './support/outbox-app.js';
import { age } from './support/resting-place.js';
import { shiftDate } from './support/shifted-date.js';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

const realNow = Date.now.bind(Date);
let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase();
  await migrateOutbox({ database: database.pool });
});
beforeEach(async () => {
  await database.query('TRUNCATE outbox_events');
});
afterEach(() => void jest.useRealTimers());
afterAll(() => database.drop());

class Listener {
  @OnEvent('fine')
  fine(): void {}

  @OnEvent('failing')
  failing(): void {
    throw new Error('no');
  }
}

describe.each([
  ['ten minutes behind', -10 * MINUTE_MS],
  ['ten minutes ahead', 10 * MINUTE_MS],
  ['a year ahead', 365 * DAY_MS],
])("an application whose clock is %s of the database's", (_, shiftMs) => {
  async function start(): Promise<OutboxApp> {
    const app = await startApp({ outbox: { pool: database.pool }, providers: [Listener] });
    shiftDate(realNow() + shiftMs);
    expect(Math.abs(Date.now() - realNow() - shiftMs)).toBeLessThan(5_000);
    return app;
  }
  const seconds = async (expression: string): Promise<number> => {
    const [row] = await database.query(
      `SELECT extract(epoch FROM ${expression})::float8 AS seconds FROM outbox_events`,
    );
    return Number(row?.['seconds']);
  };

  it('delivers at once what is due at once', async () => {
    await using app = await start();
    const { id } = await app.outbox.enqueue('fine', {});
    expect(await app.outbox.processPending()).toBe(1);
    expect((await app.event(id)).status).toBe('COMPLETED');
    expect(Math.abs(await seconds('now() - processed_at'))).toBeLessThan(5);
  });

  it('delays by the database: not early, not late', async () => {
    await using app = await start();
    await app.outbox.enqueue('fine', {}, {}, { delayMs: 5 * MINUTE_MS });
    expect(await app.outbox.processPending()).toBe(0);
    await age(database, 5 * MINUTE_MS - 5_000);
    expect(await app.outbox.processPending()).toBe(0);
    await age(database, 5_000);
    expect(await app.outbox.processPending()).toBe(1);
  });

  it('waits two minutes after a failure, by the database', async () => {
    await using app = await start();
    await app.outbox.enqueue('failing', {});
    await app.outbox.processPending();
    const wait = await seconds('scheduled_at - now()');
    expect(wait).toBeGreaterThan(115);
    expect(wait).toBeLessThanOrEqual(120);
  });

  it('gives an unheard event its whole grace, and no more', async () => {
    await using app = await start();
    const { id } = await app.outbox.enqueue('nobody', {});
    await app.outbox.processPending();
    await age(database, DAY_MS - MINUTE_MS);
    await app.outbox.processPending();
    expect((await app.event(id)).status).toBe('PENDING');
    await age(database, 2 * MINUTE_MS);
    await app.outbox.processPending();
    expect((await app.event(id)).status).toBe('FAILED');
  });

  it('reaps a lease that has run out and leaves a fresh one', async () => {
    await using app = await start();
    await app.outbox.enqueue('fine', {});
    await app.store.claim({ limit: 1, leaseMs: MINUTE_MS });
    expect(await app.outbox.reap()).toBe(0);
    await age(database, MINUTE_MS + 1_000);
    expect(await app.outbox.reap()).toBe(1);
  });

  it('deletes what is past its retention, and nothing younger', async () => {
    await using app = await start();
    await app.outbox.enqueue('fine', {});
    await app.outbox.processPending();
    expect(await app.outbox.deleteProcessed()).toEqual({ completed: 0, failed: 0, inbox: 0 });
    await age(database, 7 * DAY_MS - MINUTE_MS);
    expect(await app.outbox.deleteProcessed()).toEqual({ completed: 0, failed: 0, inbox: 0 });
    await age(database, 2 * MINUTE_MS);
    expect(await app.outbox.deleteProcessed()).toEqual({ completed: 1, failed: 0, inbox: 0 });
  });
});
