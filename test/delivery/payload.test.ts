import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { OnEvent } from '@nestjs/event-emitter';
import type {
  ClaimedEvent,
  ClaimRequest,
  Delivered,
  OutboxModuleOptions,
} from '../../src/index.js';
import { InMemoryOutboxStore } from '../../src/testing.js';
import { startApp } from '../support/outbox-app.js';
import { openRestingPlace, RESTING_PLACES, type RestingPlace } from '../support/resting-place.js';

describe.each(RESTING_PLACES)('what a listener receives, with events in %s', (kind) => {
  let place: RestingPlace;
  let outbox: OutboxModuleOptions;

  beforeAll(async () => {
    place = await openRestingPlace(kind);
  });
  beforeEach(async () => {
    outbox = await place.empty();
    received.splice(0);
  });
  afterAll(() => place.close());

  const received: Delivered[] = [];
  let fail = false;
  class Listener {
    @OnEvent('a')
    handle(event: Delivered): void {
      received.push(event);
      if (fail) throw new Error('no');
    }
  }
  const start = () => startApp({ outbox, providers: [Listener] });

  it('the payload, and under _outbox what is known of the event', async () => {
    await using app = await start();
    fail = true;
    const { id } = await app.outbox.enqueue('a', { n: 1, list: [{ x: null }] }, { traceId: 't' });
    await app.outbox.processPending();
    const stored = await app.event(id);
    fail = false;
    await place.age(2 * 60_000);
    await app.outbox.processPending();

    const [first, second] = received;
    expect({ ...first }).toEqual({
      n: 1,
      list: [{ x: null }],
      _outbox: expect.objectContaining({
        id,
        eventType: 'a',
        attempt: 1,
        retryCount: 0,
        metadata: { traceId: 't' },
        scheduledAt: expect.any(Date),
        createdAt: stored.createdAt,
      }),
    });
    expect(first?._outbox.scheduledAt).toEqual(stored.createdAt);
    expect(second?._outbox).toMatchObject({ id, attempt: 2, retryCount: 1 });
  });

  it('a signal that neither JSON nor a copy carries along', async () => {
    await using app = await start();
    await app.outbox.enqueue('a', { n: 1 });
    await app.outbox.processPending();
    const [event] = received;
    expect(event?._outbox.signal).toBeInstanceOf(AbortSignal);
    expect(event?._outbox.signal.aborted).toBe(false);
    expect(Object.keys(event?._outbox ?? {})).toEqual([
      'id',
      'eventType',
      'attempt',
      'retryCount',
      'scheduledAt',
      'createdAt',
      'metadata',
    ]);
    expect(JSON.parse(JSON.stringify(event))).not.toHaveProperty('_outbox.signal');
    expect(() => structuredClone(event)).not.toThrow();
  });

  it('an object of its own: neither the one that was enqueued, nor that of the attempt before', async () => {
    class Careless {
      @OnEvent('b')
      handle(event: Delivered & { n: number; list: number[] }): void {
        received.push({ ...event });
        event.n++;
        event.list.push(99);
        Object.freeze(event);
        throw new Error('no');
      }
    }
    await using app = await startApp({ outbox, providers: [Careless] });
    const payload = Object.freeze({ n: 1, list: Object.freeze([1, 2]) });
    await app.outbox.enqueue('b', payload);
    await app.outbox.processPending();
    await place.age(2 * 60_000);
    await app.outbox.processPending();
    expect(received).toHaveLength(2);
    for (const event of received) expect(event).toMatchObject({ n: 1 });
    expect(payload).toEqual({ n: 1, list: [1, 2] });
  });

  it('the very keys that were enqueued, also those that JavaScript gives a meaning', async () => {
    await using app = await start();
    const payload = JSON.parse(
      '{"__proto__":{"isAdmin":true},"constructor":{"prototype":{"x":1}},"a":1}',
    ) as Record<string, unknown>;
    await app.outbox.enqueue('a', payload);
    await app.outbox.processPending();
    const event = received[0] as Record<string, unknown> & Delivered;
    expect(event['isAdmin']).toBeUndefined();
    expect(({} as Record<string, unknown>)['isAdmin']).toBeUndefined();
    expect(({} as Record<string, unknown>)['x']).toBeUndefined();
    expect(Object.getPrototypeOf(event)).toBe(Object.prototype);
    const { _outbox, ...rest } = event;
    expect(JSON.stringify(rest)).toContain('"__proto__":{"isAdmin":true}');
    expect(rest['constructor']).toEqual({ prototype: { x: 1 } });
  });

  it.each([
    ['arrays', { list: [1, [2, []], { a: [] }], empty: [] }],
    ['strings that look like JSON', { number: '10.5', object: '{"a":1}', text: '"x"' }],
    ['numbers', { a: 0, b: -1.5, c: 1e21, d: Number.MAX_SAFE_INTEGER, e: 5e-324 }],
    ['characters', { emoji: '👋🏽', korean: '견적 요청', quote: `'"\\$1`, control: '\u0001\n\t' }],
    ['null and booleans', { a: null, b: true, c: false }],
    ['keys', { '': 1, 'a.b': 2, 한글: 3, toString: 4, hasOwnProperty: 5 }],
  ])('%s as they were enqueued', async (_, payload) => {
    await using app = await start();
    const { id } = await app.outbox.enqueue('a', payload, payload);
    await app.outbox.processPending();
    const { _outbox, ...rest } = received[0] ?? ({} as Delivered);
    expect(rest).toEqual(payload);
    expect(_outbox.metadata).toEqual(payload);
    expect((await app.event(id)).payload).toEqual(payload);
  });

  it('a Date as its ISO string, and nothing for what is undefined', async () => {
    await using app = await start();
    const at = new Date('2026-01-02T03:04:05.678Z');
    await app.outbox.enqueue('a', { at, nothing: undefined });
    await app.outbox.processPending();
    const { _outbox, ...rest } = received[0] ?? ({} as Delivered);
    expect(rest).toEqual({ at: '2026-01-02T03:04:05.678Z' });
    expect('nothing' in rest).toBe(false);
  });
});

it('a store may keep its payloads to itself: what it hands out is neither changed nor handed on', async () => {
  const handedOut: object[] = [];
  class Keeping extends InMemoryOutboxStore {
    override async claim(request: ClaimRequest): Promise<ClaimedEvent[]> {
      const claimed = await super.claim(request);
      for (const { payload } of claimed) handedOut.push(Object.freeze(payload));
      return claimed;
    }
  }
  const heard: object[] = [];
  class Listener {
    @OnEvent('a')
    handle(event: Delivered & { mine?: true }): void {
      event['mine'] = true;
      heard.push(event);
    }
  }
  await using app = await startApp({ outbox: { store: new Keeping() }, providers: [Listener] });
  const { id } = await app.outbox.enqueue('a', { n: 1 });
  await app.outbox.processPending();
  expect((await app.event(id)).status).toBe('COMPLETED');
  expect(heard).toEqual([expect.objectContaining({ n: 1, mine: true })]);
  expect(handedOut).toEqual([{ n: 1 }]);
});
