import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { OnEvent } from '@nestjs/event-emitter';
import {
  NonRetryableError,
  OUTBOX_DEAD_LETTER,
  type DeadLetter,
  type DeadLetterNotice,
  type OutboxModuleOptions,
} from '../../src/index.js';
import { startApp, type OutboxApp } from '../support/outbox-app.js';
import { openRestingPlace, RESTING_PLACES, type RestingPlace } from '../support/resting-place.js';

const MINUTE_MS = 60_000;
const fault = new Error('the pager is broken');
const NOBODY = '99999999-9999-4999-8999-999999999999';

describe.each(RESTING_PLACES)('dead letters in %s', (kind) => {
  let place: RestingPlace;
  let outbox: OutboxModuleOptions;
  const calls: string[] = [];
  const notices: DeadLetterNotice[] = [];
  let mode: 'never' | 'fail' | 'succeed';

  class Listener {
    @OnEvent('a')
    @OnEvent('b')
    handle(): void {
      calls.push('handle');
      if (mode === 'never') throw new NonRetryableError('there is no such thing');
      if (mode === 'fail') throw new Error('not today');
    }

    @OnEvent('a')
    fine(): void {
      calls.push('fine');
    }

    @OnEvent(OUTBOX_DEAD_LETTER)
    set(notice: DeadLetterNotice): void {
      notices.push(notice);
    }
  }

  beforeAll(async () => {
    place = await openRestingPlace(kind);
  });
  beforeEach(async () => {
    outbox = await place.empty();
    mode = 'never';
    calls.splice(0);
    notices.splice(0);
  });
  afterAll(() => place.close());
  const start = () => startApp({ outbox, providers: [Listener] });

  async function bury(app: OutboxApp, eventType: string, count = 1): Promise<string[]> {
    const enqueued = await app.outbox.enqueueMany(
      Array.from({ length: count }, (_, n) => ({ eventType, payload: { n } })),
    );
    while ((await app.outbox.processPending(1_000)) > 0);
    return enqueued.map(({ id }) => id);
  }

  it('are counted, listed and got, with everything that helps to understand them', async () => {
    await using app = await start();
    const [id = ''] = await bury(app, 'a');
    await bury(app, 'b', 2);
    expect(await app.deadLetters.count()).toBe(3);
    expect(await app.deadLetters.count({ eventType: 'b' })).toBe(2);
    expect(await app.deadLetters.count({ ids: [id, NOBODY] })).toBe(1);

    const letter = await app.deadLetters.get(id);
    expect(letter).toEqual({
      id,
      eventType: 'a',
      payload: { n: 0 },
      metadata: {},
      retryCount: 1,
      lastError: 'Listener.handle: NonRetryableError: there is no such thing',
      acknowledgedBy: ['Listener.fine'],
      createdAt: expect.any(Date),
      failedAt: expect.any(Date),
      previousLives: [],
    });
    expect(await app.deadLetters.get(NOBODY)).toBeNull();
    const [pending] = await app.outbox.enqueueMany([{ eventType: 'a', payload: {} }]);
    expect(await app.deadLetters.get(pending?.id ?? '')).toBeNull();
  });

  it('are listed page by page, newest first, each once, while others come and go', async () => {
    await using app = await start();
    const old = await bury(app, 'a', 5);
    const seen: string[] = [];
    let after: string | null = null;
    do {
      const page = await app.deadLetters.list({ limit: 2, after });
      seen.push(...page.items.map(({ id }) => id));
      after = page.next;
      if (seen.length === 2) {
        await bury(app, 'a');
        await app.deadLetters.discard(seen[0] ?? '');
      }
    } while (after !== null);
    expect(seen.toSorted()).toEqual(old.toSorted());

    const { items } = await app.deadLetters.list();
    const times = items.map(({ failedAt }: DeadLetter) => failedAt.getTime());
    expect(times).toEqual(times.toSorted((a, b) => b - a));
    await expect(app.deadLetters.list({ after: 'page 2' })).rejects.toThrow(
      'after must be the "next" of an earlier page',
    );
  });

  it('can be told apart by when they were set aside', async () => {
    await using app = await start();
    const [old] = await bury(app, 'a');
    await place.age(60 * MINUTE_MS);
    const [young = ''] = await bury(app, 'a');
    const youngest = (await app.deadLetters.get(young))?.failedAt.getTime() ?? 0;
    const halfAnHourAgo = new Date(youngest - 30 * MINUTE_MS);
    const ids = async (filter: object) =>
      (await app.deadLetters.list(filter)).items.map(({ id }) => id);
    expect(await ids({ failedBefore: halfAnHourAgo })).toEqual([old]);
    expect(await ids({ failedAfter: halfAnHourAgo })).toEqual([young]);
    expect(await app.deadLetters.redrive({ failedBefore: halfAnHourAgo })).toBe(1);
    expect(await ids({})).toEqual([young]);
  });

  it('get a full second life: five fresh attempts with their waits, the first life kept', async () => {
    await using app = await start();
    const [id = ''] = await bury(app, 'a');
    const dead = await app.deadLetters.get(id);
    calls.splice(0);
    mode = 'fail';
    expect(await app.deadLetters.redrive(id)).toBe(1);
    expect(await app.event(id)).toMatchObject({
      status: 'PENDING',
      retryCount: 0,
      processedAt: null,
      previousLives: [
        {
          retryCount: 1,
          lastError: dead?.lastError,
          failedAt: expect.any(String),
          redrivenAt: expect.any(String),
        },
      ],
    });
    const [life] = (await app.event(id)).previousLives;
    expect(new Date(life?.failedAt ?? '')).toEqual(dead?.failedAt);

    for (const [failures, minutes] of [
      [1, 2],
      [2, 4],
      [3, 8],
      [4, 16],
    ] as const) {
      await app.outbox.processPending();
      expect(await app.event(id)).toMatchObject({ status: 'PENDING', retryCount: failures });
      await place.age(minutes * MINUTE_MS - 2_000);
      expect(await app.outbox.processPending()).toBe(0);
      await place.age(2_000);
    }
    await app.outbox.processPending();
    expect(await app.deadLetters.get(id)).toMatchObject({
      retryCount: 5,
      lastError: 'Listener.handle: not today',
      previousLives: [{ retryCount: 1 }],
    });
    // What had succeeded in the first life was not called again.
    expect(calls).toEqual(Array.from({ length: 5 }, () => 'handle'));

    mode = 'succeed';
    await app.deadLetters.redrive(id);
    await app.outbox.processPending();
    expect(await app.event(id)).toMatchObject({ status: 'COMPLETED', retryCount: 0 });
    expect((await app.event(id)).previousLives).toHaveLength(2);
  });

  it('are redriven one, many, all of a type, or all of them', async () => {
    await using app = await start();
    const [one = '', two = '', three = ''] = await bury(app, 'a', 3);
    await bury(app, 'b', 2);
    expect(await app.deadLetters.redrive(one)).toBe(1);
    expect(await app.deadLetters.redrive(one)).toBe(0);
    expect(await app.deadLetters.redrive([one, two, NOBODY])).toBe(1);
    expect(await app.deadLetters.redrive([])).toBe(0);
    expect(await app.deadLetters.redrive({ eventType: 'b' })).toBe(2);
    expect(await app.deadLetters.count()).toBe(1);
    expect(await app.deadLetters.redrive({})).toBe(1);
    expect((await app.event(three)).status).toBe('PENDING');
    expect(await app.deadLetters.count()).toBe(0);
  });

  it('are discarded for good, and nothing else is', async () => {
    await using app = await start();
    const [one = '', two = ''] = await bury(app, 'a', 2);
    await bury(app, 'b', 2);
    const { id: pending } = await app.outbox.enqueue('a', {}, {}, { delayMs: MINUTE_MS });
    expect(await app.deadLetters.discard([one, pending])).toBe(1);
    expect(await app.deadLetters.discard({ eventType: 'b' })).toBe(2);
    expect((await place.ids()).toSorted()).toEqual([two, pending].toSorted());
    expect(await app.deadLetters.discard({})).toBe(1);
    expect(await place.ids()).toEqual([pending]);
  });

  it('ten thousand are redriven in batches, and spread over time', async () => {
    const batches: number[] = [];
    await using app = await start();
    const { store } = app;
    const redrive = store.redrive.bind(store);
    store.redrive = async (request) => {
      batches.push(request.limit);
      return redrive(request);
    };
    mode = 'never';
    await bury(app, 'b', 10_000);
    expect(await app.deadLetters.count()).toBe(10_000);

    expect(await app.deadLetters.redrive({}, { perSecond: 200 })).toBe(10_000);
    expect(batches.length).toBeGreaterThanOrEqual(10);
    expect(Math.max(...batches)).toBeLessThanOrEqual(1_000);
    // 2,000 in ten seconds: with 25 seconds to spare for a slow machine, less than the half is due by now.
    expect((await app.outbox.stats()).due).toBeLessThan(5_000);
    await place.age(25_000);
    expect((await app.outbox.stats()).due).toBeGreaterThanOrEqual(5_000);
    await place.age(25_000);
    expect(await app.outbox.stats()).toMatchObject({ due: 10_000, scheduled: 0 });
  }, 120_000);

  it('can be redriven and discarded in steps, which go on where the one before ended', async () => {
    await using app = await start();
    const { deadLetters, store } = app;
    await bury(app, 'b', 7);
    expect(await deadLetters.redrive({}, { limit: 2, perSecond: 0.1 })).toBe(2);
    const second = { limit: 2, perSecond: 0.1, firstDelayMs: 2 * 10_000 };
    expect(await deadLetters.redrive({}, second)).toBe(2);
    expect(await deadLetters.count()).toBe(3);
    const { items } = await store.list({ state: 'scheduled', limit: 10 });
    const [a = 0, b = 0, c = 0] = items.map(({ scheduledAt }) => scheduledAt.getTime());
    for (const wait of [b - a, c - b]) expect(Math.abs(wait - 10_000)).toBeLessThan(5_000);

    expect(await deadLetters.discard({}, { limit: 2 })).toBe(2);
    expect(await deadLetters.discard({}, { limit: 2 })).toBe(1);
    expect(await deadLetters.discard({}, { limit: 2 })).toBe(0);
  });

  describe('announce themselves to the application', () => {
    it('when a listener has failed for good', async () => {
      await using app = await start();
      const [id] = await bury(app, 'a');
      expect(notices).toEqual([
        {
          id,
          eventType: 'a',
          retryCount: 1,
          lastError: 'Listener.handle: NonRetryableError: there is no such thing',
        },
      ]);
    });

    it('when the reaper makes one', async () => {
      await using app = await startApp({
        outbox: { ...outbox, retry: { maxRetries: 1 } },
        providers: [Listener],
      });
      const { id } = await app.outbox.enqueue('a', {});
      await app.store.claim({ limit: 1, leaseMs: 60_000 });
      await place.age(2 * MINUTE_MS);
      expect(await app.outbox.reap()).toBe(1);
      expect(notices).toEqual([
        {
          id,
          eventType: 'a',
          retryCount: 1,
          lastError: expect.stringMatching(/^the lease ran out/),
        },
      ]);
    });

    it.each<[string, () => unknown]>([
      ['rejects', () => Promise.reject(fault)],
      [
        'throws',
        () => {
          throw fault;
        },
      ],
    ])('and a listener of that which %s harms nobody', async (_, listener) => {
      await using app = await start();
      app.emitter.on(OUTBOX_DEAD_LETTER, listener);
      const ids = await bury(app, 'a', 2);
      for (const id of ids) expect((await app.event(id)).status).toBe('FAILED');
      const said = app.log.messages('error').filter((line) => line.includes('a listener of'));
      expect(said).toEqual(
        ids.map(() => 'a listener of outbox.dead_letter failed: the pager is broken'),
      );
      mode = 'succeed';
      const { id } = await app.outbox.enqueue('a', {});
      await app.outbox.processPending();
      expect((await app.event(id)).status).toBe('COMPLETED');
    });
  });

  describe('a filter that cannot be meant is refused before anything happens', () => {
    it.each<[string, unknown, string]>([
      [
        'a misspelled field',
        { eventTpye: 'a' },
        'unknown option eventTpye: did you mean eventType?',
      ],
      ['a field of something else', { status: 'FAILED' }, 'unknown option status: known are ids, '],
      ['a page size', { eventType: 'a', limit: 10 }, 'unknown option limit'],
      [
        'an undefined field',
        { eventType: undefined },
        'eventType is undefined, which would match every',
      ],
      [
        'an undefined id',
        undefined,
        'an id, a list of ids or an object ({} for all), got undefined',
      ],
      ['null', null, 'an id, a list of ids or an object ({} for all), got null'],
      ['a number', 5, 'an id, a list of ids or an object ({} for all), got 5'],
      ['an id that is none', 'order-1', 'an event id is a UUID, got "order-1"'],
      ['a list with a hole', [undefined], 'an event id is a UUID, got undefined'],
      ['ids that are no list', { ids: NOBODY }, 'ids must be a list of event ids'],
      ['a type that is no text', { eventType: 5 }, 'eventType must be a string, got 5'],
      [
        'a time as text',
        { failedAfter: '2026-01-01' },
        'failedAfter must be a valid Date, got "2026-01-01"',
      ],
      ['an invalid time', { failedBefore: new Date('x') }, 'failedBefore must be a valid Date'],
    ])('%s', async (_, which, message) => {
      await using app = await start();
      const ids = await bury(app, 'a', 2);
      const filter = which as never;
      await expect(app.deadLetters.redrive(filter)).rejects.toThrow(message);
      await expect(app.deadLetters.discard(filter)).rejects.toThrow(message);
      if (typeof which === 'object' && !Array.isArray(which)) {
        await expect(app.deadLetters.count(filter)).rejects.toThrow(message);
      }
      for (const id of ids) expect((await app.event(id)).status).toBe('FAILED');
    });

    it('and so are wrong options', async () => {
      await using app = await start();
      const { deadLetters } = app;
      await expect(deadLetters.redrive({}, { perSecond: 0 })).rejects.toThrow('perSecond must be');
      await expect(deadLetters.redrive({}, { persecond: 5 } as never)).rejects.toThrow(
        'unknown option persecond: did you mean perSecond?',
      );
      await expect(deadLetters.redrive({}, { limit: 0 })).rejects.toThrow('limit must be a whole');
      await expect(deadLetters.discard({}, { limit: 1.5 })).rejects.toThrow('from 1 on, got 1.5');
      await expect(deadLetters.redrive({}, { firstDelayMs: -1 })).rejects.toThrow('firstDelayMs');
      await expect(deadLetters.list({ limit: 501 })).rejects.toThrow('from 1 to 500, got 501');
      await expect(deadLetters.list({ size: 5 } as never)).rejects.toThrow('unknown option size');
      await expect(deadLetters.get('x')).rejects.toThrow('an event id is a UUID');
    });
  });
});
