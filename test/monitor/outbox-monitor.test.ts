import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { OnEvent } from '@nestjs/event-emitter';
import { migrateOutbox, OutboxMonitor } from '../../src/index.js';
import { startChild } from '../support/child.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { startApp, type OutboxApp } from '../support/outbox-app.js';
import { until } from '../support/until.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase();
  await migrateOutbox({ database: database.pool });
});
beforeEach(() => database.query('TRUNCATE outbox_events, outbox_relays, outbox_activity'));
afterAll(() => database.drop());

class Listener {
  @OnEvent('good')
  good(): void {}

  @OnEvent(['bad', 'event'])
  bad(): void {
    throw new Error('no phone');
  }
}

async function start(relaying: boolean): Promise<OutboxApp & { monitor: OutboxMonitor }> {
  const app = await startApp({
    outbox: {
      pool: database.pool,
      ...(relaying && { relay: {} }),
      retry: { maxRetries: 2, backoff: () => 0 },
    },
    providers: [Listener],
  });
  return Object.assign(app, { monitor: app.module.get(OutboxMonitor) });
}

describe('the monitor', () => {
  it('knows the relays, and who listens there, also from a process that does not relay', async () => {
    await using watching = await start(false);
    expect(await watching.monitor.relays()).toEqual([]);
    const relaying = await start(true);
    const relay = await until(async () => (await watching.monitor.relays())[0], {
      what: 'the relay has reported',
    });
    expect(relay).toMatchObject({
      name: expect.stringMatching(new RegExp(`:${process.pid}$`)),
      alive: true,
      stoppedAt: null,
      listeners: relaying.monitor.listeners(),
    });
    await relaying.close();
    expect(await watching.monitor.relays()).toMatchObject([
      { relayId: relay.relayId, alive: false, stoppedAt: expect.any(Date) },
    ]);
  });

  it('names the listeners of this process and what they listen to', async () => {
    await using app = await start(false);
    expect(app.monitor.listeners()).toEqual([
      { name: 'Listener.good', event: 'good' },
      { name: 'Listener.bad', event: 'bad.event' },
    ]);
  });

  it('counts what relays settled, minute by minute, once they have reported', async () => {
    const app = await start(true);
    const { id: good } = await app.outbox.enqueue('good', {});
    await app.eventIn('COMPLETED', good);
    // No listener can be given a list: a failed attempt, and its last.
    await database.query(
      `INSERT INTO outbox_events (event_type, payload, retry_count) VALUES ('good', '[]', 1)`,
    );
    app.outbox.wake();
    await until(async () => (await app.outbox.stats()).failed === 1, { what: 'it is set aside' });
    await app.close();
    await using watching = await start(false);
    expect(await watching.monitor.activity()).toMatchObject([
      { eventType: 'good', delivered: 1, retried: 0, failed: 1 },
    ]);
    expect(await watching.monitor.activity({ eventType: 'other' })).toEqual([]);
  });

  it('does not call a relay that was killed alive for longer than a minute', async () => {
    await using watching = await start(false);
    const child = startChild('relay-app', {
      env: { RELAY_APP: JSON.stringify({ database: database.connectionString }) },
    });
    await until(async () => (await watching.monitor.relays())[0]?.alive, { what: 'it reports' });
    await child.kill();
    const age = (seconds: number) =>
      database.query(`UPDATE outbox_relays SET seen_at = now() - $1 * interval '1 second'`, [
        seconds,
      ]);
    await age(50);
    expect(await watching.monitor.relays()).toMatchObject([{ alive: true, stoppedAt: null }]);
    await age(61);
    expect(await watching.monitor.relays()).toMatchObject([{ alive: false, stoppedAt: null }]);
  });

  it('keeps activity for 25 hours and relays for a day', async () => {
    const app = await start(true);
    await app.eventIn('COMPLETED', (await app.outbox.enqueue('good', {})).id);
    await app.close();
    await database.query(
      `UPDATE outbox_activity SET minute = minute - interval '25 hours 1 minute'`,
    );
    await database.query(`UPDATE outbox_relays SET seen_at = now() - interval '25 hours'`);
    const [gone] = await database.query<{ relay_id: string }>('SELECT relay_id FROM outbox_relays');
    await using next = await start(true);
    await until(async () => (await next.monitor.relays()).some(({ alive }) => alive), {
      what: 'the next relay has reported',
    });
    expect(await database.query('SELECT FROM outbox_activity')).toEqual([]);
    const left = await database.query('SELECT relay_id FROM outbox_relays');
    expect(left).toHaveLength(1);
    expect(left).not.toContainEqual(gone);
  });

  it('lists events that are not finished, and finds one by its id', async () => {
    await using app = await start(false);
    const { id } = await app.outbox.enqueue('good', { n: 1 }, {}, { delayMs: 60_000 });
    const { items, next } = await app.monitor.events({ state: 'scheduled', limit: 1 });
    expect([items.map((item) => item.id), next]).toEqual([[id], null]);
    expect((await app.monitor.events({ state: 'due' })).items).toEqual([]);
    expect(await app.monitor.find(id)).toMatchObject({ payload: { n: 1 }, status: 'PENDING' });
  });

  it.each([
    [{ state: 'failed' }, 'state must be due, scheduled, processing, got "failed"'],
    [{ state: 'due', limit: 0 }, 'limit must be a whole number from 1 to 500, got 0'],
    [{ state: 'due', type: 'a' }, 'unknown option type: known are'],
    [{ state: 'due', eventType: 5 }, 'eventType must be a text without NUL, got 5'],
    [{ state: 'due', after: 5 }, 'after must be the "next" of an earlier page, got 5'],
    [undefined, 'options must be an object'],
    [null, 'options must be an object'],
  ])('refuses to list %p', async (options, message) => {
    await using app = await start(false);
    await expect(app.monitor.events(options as never)).rejects.toThrow(message);
  });

  it.each([
    [{ sinceMs: 0 }, 'sinceMs must be a whole number from 60000 to 90000000'],
    [{ stepMs: 1_000 }, 'stepMs must be whole minutes'],
    [{ eventType: {} }, 'eventType must be a text without NUL, got an object'],
    [5, 'options must be an object'],
    [{ step: 1 }, 'unknown option step: did you mean stepMs?'],
  ])('refuses activity of %p', async (options, message) => {
    await using app = await start(false);
    await expect(app.monitor.activity(options as never)).rejects.toThrow(message);
  });
});
