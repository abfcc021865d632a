import { describe, expect, it } from '@jest/globals';
import { OnEvent } from '@nestjs/event-emitter';
import { BootstrapPublisher, NonRetryableError, type Delivered } from '../../src/index.js';
import { InMemoryOutboxStore } from '../../src/testing.js';
import { startApp } from '../support/outbox-app.js';
import { startTelemetry } from '../support/telemetry.js';
import { until } from '../support/until.js';

class Listeners {
  @OnEvent('good')
  good(): void {}

  @OnEvent('bad')
  bad(): void {
    throw new TypeError('always');
  }

  @OnEvent('hopeless')
  hopeless(): void {
    throw new NonRetryableError('no phone number');
  }
}

const TABLE = { 'outbox.table': 'public.outbox_events' };

describe('what became of events', () => {
  it('is counted by outcome and type', async () => {
    await using telemetry = startTelemetry();
    const store = new InMemoryOutboxStore();
    await using app = await startApp({ outbox: { store }, providers: [Listeners] });
    const item = (eventType: string) => ({ eventType, payload: {} });
    const types = ['good', 'good', 'bad', 'hopeless', 'nobody'];
    await app.outbox.enqueueMany(types.map(item));
    expect(await app.outbox.processPending()).toBe(5);

    const settled = await telemetry.measured('outbox.events.settled');
    const of = (type: string, outcome: string, value: number) => ({
      value,
      attributes: { ...TABLE, 'messaging.destination.name': type, 'outbox.outcome': outcome },
    });
    expect(settled).toHaveLength(4);
    expect(settled).toEqual(
      expect.arrayContaining([
        of('good', 'completed', 2),
        of('bad', 'retry', 1),
        of('hopeless', 'failed', 1),
        of('nobody', 'unheard', 1),
      ]),
    );
  });

  it('is timed: each listener, each delivery, and from due to delivered', async () => {
    await using telemetry = startTelemetry();
    const store = new InMemoryOutboxStore();
    class Moody {
      @OnEvent('good')
      good({ _outbox }: Delivered): void {
        if (_outbox.attempt === 1) throw new TypeError('not today');
      }
    }
    await using app = await startApp({ outbox: { store }, providers: [Listeners, Moody] });
    await app.outbox.enqueue('good', {});
    await app.outbox.processPending();
    expect(await telemetry.measured('outbox.delivery.delay')).toEqual([]);
    // Due again after 120 s, and seen 30 s later.
    store.advance(150_000);
    await app.outbox.processPending();

    const type = { 'messaging.destination.name': 'good' };
    const system = {
      'messaging.system': 'nestjs-outbox-relay',
      'messaging.operation.name': 'deliver',
    };
    const listener = (name: string) => ({ 'messaging.consumer.group.name': name });
    const consumed = await telemetry.measured('messaging.client.consumed.messages');
    expect(consumed).toHaveLength(3);
    expect(consumed).toEqual(
      expect.arrayContaining([
        { value: 1, attributes: { ...system, ...type, ...listener('Listeners.good') } },
        {
          value: 1,
          attributes: { ...system, ...type, ...listener('Moody.good'), 'error.type': 'TypeError' },
        },
        { value: 1, attributes: { ...system, ...type, ...listener('Moody.good') } },
      ]),
    );
    const processed = await telemetry.measured('messaging.process.duration', {
      'messaging.operation.type': 'process',
    });
    expect(processed.map(({ value }) => value)).toEqual([1, 1, 1]);
    expect(await telemetry.measured('outbox.delivery.duration')).toMatchObject([
      { value: 1, attributes: { ...TABLE, ...type, 'outbox.outcome': 'failed' } },
      { value: 1, attributes: { ...TABLE, ...type, 'outbox.outcome': 'delivered' } },
    ]);
    const [delay, ...others] = await telemetry.measured('outbox.delivery.delay');
    expect(others).toEqual([]);
    expect(delay).toMatchObject({ value: 1, attributes: { ...TABLE, ...type } });
    expect(delay?.sum).toBeGreaterThanOrEqual(30);
    expect(delay?.sum).toBeLessThan(35);
  });

  it('counts what is sent, and what failed to be', async () => {
    await using telemetry = startTelemetry();
    const store = new InMemoryOutboxStore();
    await using app = await startApp({ outbox: { store, onStoreFailure: 'throw' } });
    await app.outbox.enqueueMany([
      { eventType: 'good', payload: {} },
      { eventType: 'good', payload: {} },
      { eventType: 'bad', payload: {} },
    ]);
    store.enqueue = async () => {
      throw new RangeError('the disk is full');
    };
    await expect(app.outbox.enqueue('good', {})).rejects.toThrow();
    const system = {
      'messaging.system': 'nestjs-outbox-relay',
      'messaging.operation.name': 'enqueue',
    };
    const good = { ...system, 'messaging.destination.name': 'good' };
    expect(await telemetry.measured('messaging.client.sent.messages')).toEqual([
      { value: 2, attributes: good },
      { value: 1, attributes: { ...system, 'messaging.destination.name': 'bad' } },
      { value: 1, attributes: { ...good, 'error.type': 'RangeError' } },
    ]);
    expect(await telemetry.measured('messaging.client.operation.duration')).toMatchObject([
      { value: 1, attributes: { ...system, 'messaging.operation.type': 'send' } },
      { value: 1, attributes: { ...good, 'error.type': 'RangeError' } },
    ]);
  });

  it('counts reaped events and lost leases, and shows 0 before the first', async () => {
    await using telemetry = startTelemetry();
    const store = new InMemoryOutboxStore();
    class Stolen {
      @OnEvent('good')
      good(): void {
        // The process was paused for so long that its lease ran out, and another one has reaped.
        store.advance(120_000);
      }
    }
    await using app = await startApp({ outbox: { store }, providers: [Stolen] });
    for (const metric of ['outbox.leases.lost', 'outbox.events.reaped'])
      expect(await telemetry.measured(metric)).toEqual([{ value: 0, attributes: TABLE }]);

    await app.outbox.enqueueMany([
      { eventType: 'other', payload: {} },
      { eventType: 'other', payload: {} },
    ]);
    await store.claim({ limit: 10, leaseMs: 1_000 });
    store.advance(2_000);
    expect(await app.outbox.reap()).toBe(2);
    expect(await telemetry.measured('outbox.events.reaped')).toEqual([
      { value: 2, attributes: TABLE },
    ]);
    expect(await telemetry.measured('outbox.events.settled')).toMatchObject([
      { value: 2, attributes: { 'outbox.outcome': 'retry' } },
    ]);

    await app.outbox.enqueue('good', {});
    const settleAndClaim = store.settleAndClaim.bind(store);
    store.settleAndClaim = async (settlements, claim) => {
      await store.reap({ limit: 10, leaseMs: 1_000 });
      return settleAndClaim(settlements, claim);
    };
    await app.outbox.processPending(1);
    expect(await telemetry.measured('outbox.leases.lost')).toEqual([
      { value: 1, attributes: TABLE },
    ]);
  });
});

describe('gates', () => {
  it('count their failures by kind, and what closed them', async () => {
    await using telemetry = startTelemetry();
    await using app = await startApp({
      outbox: { store: new InMemoryOutboxStore() },
      providers: [Listeners],
    });
    const publisher = app.module.get(BootstrapPublisher);
    const run = (key: string, error: Error) =>
      publisher.run({
        key,
        eventType: 'good',
        load: () => {
          throw error;
        },
        payload: () => ({}),
        whenEmpty: 'leave',
      });
    const kinds = async () =>
      Object.fromEntries(
        (await telemetry.measured('outbox.gate.failures')).map(({ value, attributes }) => [
          attributes['outbox.gate.failure_kind'],
          value,
        ]),
      );
    expect(await kinds()).toEqual({ transient: 0, deterministic: 0, unknown: 0 });
    await expect(run('a', Object.assign(new Error(), { code: 'ECONNREFUSED' }))).rejects.toThrow();
    await expect(run('b', new NonRetryableError('poison'))).rejects.toThrow();
    await expect(run('b', new NonRetryableError('poison'))).rejects.toThrow(); // closed: not tried
    expect(await kinds()).toEqual({ transient: 1, deterministic: 1, unknown: 0 });
    expect(await telemetry.measured('outbox.gate.closings')).toEqual([
      { value: 1, attributes: TABLE },
    ]);
  });
});

describe('gauges', () => {
  const GAUGES = [
    'outbox.events.due',
    'outbox.events.scheduled',
    'outbox.events.processing',
    'outbox.events.dead',
    'outbox.events.unheard',
    'outbox.oldest_due.age',
    'outbox.relay.alive',
    'outbox.store.up',
  ];

  it('are what the store says, where events are relayed', async () => {
    await using telemetry = startTelemetry();
    const store = new InMemoryOutboxStore();
    await using app = await startApp({
      outbox: { store, relay: { listenerTimeoutMs: 60_000 } },
      providers: [Listeners],
    });
    const { id } = await app.outbox.enqueue('hopeless', {});
    await app.eventIn('FAILED', id);
    await app.outbox.enqueue('nobody', {});
    await until(async () => (await store.stats()).unheard['nobody'] === 1, { what: 'unheard' });
    await app.outbox.enqueue('good', {}, {}, { delayMs: 3_600_000 });
    const event = { id: '00000000-0000-4000-8000-000000000001', metadata: {}, payload: {} };
    await store.enqueue([{ ...event, eventType: 'good' }]);
    store.advance(7_000);

    const read = async (metric: string) => {
      const [point, ...others] = await telemetry.measured(metric);
      expect(others).toEqual([]);
      expect(point?.attributes).toEqual(TABLE);
      return point?.value;
    };
    expect(await read('outbox.events.due')).toBe(1);
    expect(await read('outbox.events.scheduled')).toBe(2);
    expect(await read('outbox.events.processing')).toBe(0);
    expect(await read('outbox.events.dead')).toBe(1);
    expect(await read('outbox.events.unheard')).toBe(1);
    expect(await read('outbox.oldest_due.age')).toBeCloseTo(7, 0);
    expect(await read('outbox.relay.alive')).toBe(1);
    expect(await read('outbox.store.up')).toBe(1);
  });

  it('are not there in a process that does not relay', async () => {
    await using telemetry = startTelemetry();
    await using writer = await startApp({ outbox: { store: new InMemoryOutboxStore() } });
    await writer.outbox.enqueue('good', {});
    for (const metric of GAUGES) expect(await telemetry.measured(metric)).toEqual([]);
  });

  it('ask the store no more once the application is closed', async () => {
    await using telemetry = startTelemetry();
    const store = new InMemoryOutboxStore();
    let asked = 0;
    const stats = store.stats.bind(store);
    store.stats = () => {
      asked++;
      return stats();
    };
    const app = await startApp({ outbox: { store, relay: {} } });
    await app.close();
    await telemetry.names();
    expect(asked).toBe(0);
  });

  it('say so when the store does not answer', async () => {
    await using telemetry = startTelemetry();
    const store = new InMemoryOutboxStore();
    store.stats = async () => {
      throw new Error('no database');
    };
    await using app = await startApp({ outbox: { store, relay: {} } });
    expect(app.log.messages('error')).toEqual([]);
    expect(await telemetry.measured('outbox.store.up')).toEqual([{ value: 0, attributes: TABLE }]);
    expect(await telemetry.measured('outbox.events.due')).toEqual([]);
    expect(await telemetry.measured('outbox.relay.alive')).toMatchObject([{ value: 1 }]);
  });

  it('tell how many gates fail, and how many are closed', async () => {
    await using telemetry = startTelemetry();
    const store = new InMemoryOutboxStore();
    store.sentinels.stats = async () => ({ failing: 2, closed: 1 });
    await using app = await startApp({ outbox: { store, relay: {} } });
    expect(await app.outbox.stats()).toMatchObject({ gates: { failing: 2, closed: 1 } });
    for (const [metric, value] of [
      ['outbox.gates.failing', 2],
      ['outbox.gates.closed', 1],
    ] as const)
      expect(await telemetry.measured(metric)).toEqual([{ value, attributes: TABLE }]);
  });

  it('of two outboxes in one process are told apart by their tables', async () => {
    await using telemetry = startTelemetry();
    const outbox = () => ({ store: new InMemoryOutboxStore(), relay: {} });
    await using first = await startApp({ outbox: outbox() });
    await using second = await startApp({ outbox: { ...outbox(), table: 'billing_events' } });
    expect(first).not.toBe(second);
    const alive = await telemetry.measured('outbox.relay.alive');
    expect(alive.map(({ attributes }) => String(attributes['outbox.table'])).toSorted()).toEqual([
      'public.billing_events',
      'public.outbox_events',
    ]);
  });
});

it('a failing class of errors by the hundred is one label in the end', async () => {
  await using telemetry = startTelemetry();
  let count = 0;
  class Creative {
    @OnEvent('odd')
    odd(): void {
      throw Object.assign(new Error('odd'), { name: `Error${++count}` });
    }
  }
  await using app = await startApp({
    outbox: { store: new InMemoryOutboxStore() },
    providers: [Creative],
  });
  await app.outbox.enqueueMany(
    Array.from({ length: 102 }, () => ({ eventType: 'odd', payload: {} })),
  );
  await app.outbox.processPending(200);
  const consumed = await telemetry.measured('messaging.client.consumed.messages');
  expect(consumed).toHaveLength(101);
  expect(consumed.at(-1)).toMatchObject({ value: 2, attributes: { 'error.type': '_OTHER' } });
});
