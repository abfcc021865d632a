import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { OnEvent } from '@nestjs/event-emitter';
import pg from 'pg';
import {
  migrateOutbox,
  type Delivered,
  type NewEvent,
  type OutboxModuleOptions,
} from '../src/index.js';
import { InMemoryOutboxStore } from '../src/testing.js';
import { createDatabase } from './support/database.js';
import { startApp } from './support/outbox-app.js';
import { openRestingPlace, RESTING_PLACES, type RestingPlace } from './support/resting-place.js';
import { startTcpProxy } from './support/tcp-proxy.js';
import { deferred, until } from './support/until.js';

const ID = 'aaaaaaaa-1111-4111-8111-111111111111';
const MINUTE_MS = 60_000;

const heard: Delivered[] = [];
class Listener {
  @OnEvent('a')
  handle(event: Delivered): void {
    heard.push(event);
  }
}
beforeEach(() => void heard.splice(0));

describe.each(RESTING_PLACES)('enqueue, with events in %s', (kind) => {
  let place: RestingPlace;
  let outbox: OutboxModuleOptions;

  beforeAll(async () => {
    place = await openRestingPlace(kind);
  });
  beforeEach(async () => {
    outbox = await place.empty();
  });
  afterAll(() => place.close());
  const start = () => startApp({ outbox, providers: [Listener] });

  it('stores an event and says under which id; nothing is delivered by that', async () => {
    await using app = await start();
    const answer = await app.outbox.enqueue('a', { n: 1 });
    expect(answer).toEqual({ id: expect.stringMatching(/^[0-9a-f-]{36}$/), stored: true });
    expect(heard).toEqual([]);
    expect(await app.event(answer.id)).toMatchObject({
      status: 'PENDING',
      eventType: 'a',
      payload: { n: 1 },
      metadata: {},
      retryCount: 0,
      lastError: null,
      processedAt: null,
    });
  });

  it.each(['tx', 'delayMs', 'scheduledAt'])(
    'refuses %s where the metadata belong',
    async (option) => {
      await using app = await start();
      await expect(app.outbox.enqueue('a', {}, { [option]: 'none' })).rejects.toThrow(
        `metadata.${option} is an option: options are the fourth argument`,
      );
      expect(await app.outbox.processPending()).toBe(0);
    },
  );

  it('with an id given a second time writes nothing and says so', async () => {
    await using app = await start();
    expect(await app.outbox.enqueue('a', { n: 1 }, {}, { id: ID })).toEqual({
      id: ID,
      stored: true,
    });
    expect(await app.outbox.enqueue('b', { n: 2 }, {}, { id: ID.toUpperCase() })).toEqual({
      id: ID,
      stored: true,
      duplicate: true,
    });
    expect(await app.event(ID)).toMatchObject({ eventType: 'a', payload: { n: 1 } });
    await app.outbox.processPending();
    expect(await app.outbox.enqueue('a', { n: 1 }, {}, { id: ID })).toMatchObject({
      duplicate: true,
    });
    expect(await app.outbox.processPending()).toBe(0);
    expect(heard).toHaveLength(1);
  });

  it('later: not before its delay, not before its moment', async () => {
    await using app = await start();
    const inAMinute = await app.outbox.enqueue('a', {}, {}, { delayMs: MINUTE_MS });
    const atATime = await app.outbox.enqueue(
      'a',
      {},
      {},
      { scheduledAt: new Date(Date.now() + 2 * MINUTE_MS) },
    );
    const longAgo = await app.outbox.enqueue('a', {}, {}, { scheduledAt: new Date(0) });
    await app.outbox.processPending();
    expect((await app.event(longAgo.id)).status).toBe('COMPLETED');
    expect(await app.outbox.stats()).toMatchObject({ due: 0, scheduled: 2 });

    await place.age(MINUTE_MS);
    await app.outbox.processPending();
    expect((await app.event(inAMinute.id)).status).toBe('COMPLETED');
    expect((await app.event(atATime.id)).status).toBe('PENDING');
    await place.age(MINUTE_MS);
    await app.outbox.processPending();
    expect((await app.event(atATime.id)).status).toBe('COMPLETED');
  });

  it('enqueueMany stores all of them, each as it wants, and answers in their order', async () => {
    await using app = await start();
    const answers = await app.outbox.enqueueMany([
      { eventType: 'a', payload: { n: 0 }, metadata: { m: 0 } },
      { eventType: 'a', payload: { n: 1 }, id: ID },
      { eventType: 'a', payload: { n: 2 }, id: ID },
      { eventType: 'a', payload: { n: 3 }, delayMs: MINUTE_MS },
    ]);
    expect(answers).toEqual([
      { id: expect.any(String), stored: true },
      { id: ID, stored: true },
      { id: ID, stored: true, duplicate: true },
      { id: expect.any(String), stored: true },
    ]);
    expect((await app.event(ID)).payload).toEqual({ n: 1 });
    expect(await app.outbox.processPending()).toBe(2);
    expect(await app.outbox.enqueueMany([])).toEqual([]);
  });

  it('enqueueMany is all or nothing, and its error names the event', async () => {
    await using app = await start();
    const good = { eventType: 'a', payload: {} };
    const bad: [unknown, string][] = [
      [{ eventType: '', payload: {} }, 'events[1].eventType must not be empty'],
      [
        { eventType: 'a', payload: { deep: [{ n: 1n }] } },
        'events[1].payload.deep[0].n is a BigInt',
      ],
      [{ eventType: 'a', payload: {}, id: 'x' }, 'events[1].id must be a UUID, got "x"'],
      [
        { eventType: 'a', payload: {}, delay: 5 },
        'unknown option events[1].delay: did you mean delayMs?',
      ],
      [null, 'events[1] must be an object { eventType, payload, … }, got null'],
      [undefined, 'events[1] must be an object { eventType, payload, … }, got undefined'],
    ];
    for (const [item, message] of bad) {
      await expect(app.outbox.enqueueMany([good, item as never, good])).rejects.toThrow(message);
    }
    await expect(app.outbox.enqueueMany([bad[0]?.[0] as never])).rejects.toThrow(/^events\[0\]\./);
    await expect(app.outbox.enqueueMany('a' as never)).rejects.toThrow('events must be an array');
    expect(await place.ids()).toEqual([]);
  });

  it('a batch larger than one page goes in at once', async () => {
    await using app = await start();
    const events = Array.from({ length: 2_500 }, (_, n) => ({ eventType: 'a', payload: { n } }));
    const answers = await app.outbox.enqueueMany(events);
    expect(new Set(answers.map(({ id }) => id)).size).toBe(2_500);
    expect((await app.outbox.stats()).due).toBe(2_500);
  });

  describe('wrong input is refused with the fix, stored nowhere and never emitted', () => {
    const circle: Record<string, unknown> = {};
    circle['self'] = { circle };
    it.each<[string, unknown[], string]>([
      ['no event type', [undefined, {}], 'eventType must be a string'],
      ['an empty event type', ['  ', {}], 'eventType must not be empty'],
      ['too long an event type', ['x'.repeat(256), {}], 'eventType must be at most 255 characters'],
      ['the type error', ['error', {}], 'has a meaning of its own to the emitter'],
      ['the type newListener', ['newListener', {}], 'has a meaning of its own to the emitter'],
      [
        'the type removeListener',
        ['removeListener', {}],
        'has a meaning of its own to the emitter',
      ],
      ['the outbox’s own type', ['outbox.dead_letter', {}], 'has a meaning of its own'],
      [
        'a type that every object has',
        ['constructor', {}],
        'a name that every JavaScript object has',
      ],
      ['no payload', ['a'], 'payload is undefined'],
      ['null', ['a', null], 'payload must be a plain JSON object'],
      ['an array', ['a', [1, 2]], 'payload must be a plain JSON object'],
      ['an empty array', ['a', []], 'payload must be a plain JSON object'],
      ['a string', ['a', '{"a":1}'], 'payload must be a plain JSON object'],
      ['a number', ['a', 10.5], 'payload must be a plain JSON object'],
      ['a function inside', ['a', { f: () => {} }], 'payload.f is a function'],
      ['a Map inside', ['a', { deep: [new Map()] }], 'payload.deep[0] is a Map'],
      ['an invalid Date', ['a', { at: new Date(Number.NaN) }], 'payload.at is an invalid Date'],
      ['NaN', ['a', { n: Number.NaN }], 'payload.n is NaN'],
      ['a circle', ['a', circle], 'payload.self.circle refers back'],
      ['NUL', ['a', { s: 'a\0b' }], 'payload.s contains NUL'],
      ['NUL in a key', ['a', { deep: { 'k\0': 1 } }], 'a key of payload.deep contains NUL'],
      [
        'half a character',
        ['a', { list: ['\ud83d'] }],
        'payload.list[0] contains a lone surrogate',
      ],
      ['_outbox', ['a', { _outbox: 'mine', a: 1 }], 'payload._outbox is set by the outbox itself'],
      [
        '_outboxFailed',
        ['a', { _outboxFailed: true }],
        'payload._outboxFailed is set by the outbox',
      ],
      ['too large a payload', ['a', { s: 'x'.repeat(1_100_000) }], 'more than the 1048576 allowed'],
      ['metadata that is no object', ['a', {}, 'm'], 'metadata must be a plain JSON object'],
      ['metadata with NUL', ['a', {}, { m: '\0' }], 'metadata.m contains NUL'],
      ['options null', ['a', {}, {}, null], 'options must be an object'],
      [
        'an unknown option',
        ['a', {}, {}, { delayMS: 5 }],
        'unknown option delayMS: did you mean delayMs?',
      ],
      [
        'an id that is no UUID',
        ['a', {}, {}, { id: 'order-1' }],
        'id must be a UUID, got "order-1"',
      ],
      ['id null', ['a', {}, {}, { id: null }], 'id must be a UUID, got null'],
      [
        'a negative delay',
        ['a', {}, {}, { delayMs: -1 }],
        'delayMs must be a number of milliseconds',
      ],
      [
        'a delay in words',
        ['a', {}, {}, { delayMs: '5m' }],
        'delayMs must be a number of milliseconds, 0 or more, got "5m"',
      ],
      ['an endless delay', ['a', {}, {}, { delayMs: Infinity }], 'delayMs must be a number'],
      [
        'a time as text',
        ['a', {}, {}, { scheduledAt: '2031-01-01' }],
        'scheduledAt must be a valid Date, got "2031-01-01"',
      ],
      [
        'an invalid time',
        ['a', {}, {}, { scheduledAt: new Date('x') }],
        'scheduledAt must be a valid Date',
      ],
      [
        'a delay and a time',
        ['a', {}, {}, { delayMs: 5, scheduledAt: new Date() }],
        'exclude each other',
      ],
    ])('%s', async (_, args, message) => {
      await using app = await start();
      const enqueue = app.outbox.enqueue(...(args as Parameters<typeof app.outbox.enqueue>));
      await expect(enqueue).rejects.toThrow(message);
      await expect(enqueue).rejects.toMatchObject({
        name: 'OutboxError',
        code: 'INVALID_ARGUMENT',
      });
      expect(await place.ids()).toEqual([]);
      expect(heard).toEqual([]);
    });
  });

  it('array, string and double-encoded values nested in a payload stay what they are', async () => {
    await using app = await start();
    const payload = { list: [1, 2], empty: [], objects: [{ a: 1 }], text: '10.5', json: '{"a":1}' };
    const [one] = await app.outbox.enqueueMany([{ eventType: 'a', payload }]);
    const { id } = await app.outbox.enqueue('a', payload);
    expect((await app.event(id)).payload).toEqual(payload);
    expect((await app.event(one?.id ?? '')).payload).toEqual(payload);
    await app.outbox.processPending();
    for (const event of heard) expect(event).toMatchObject(payload);
  });

  it('takes payloads up to the size that was set', async () => {
    await using app = await startApp({ outbox: { ...outbox, maxPayloadBytes: 100 } });
    await app.outbox.enqueue('a', { s: 'é'.repeat(46) });
    await expect(app.outbox.enqueue('a', { s: 'é'.repeat(47) })).rejects.toThrow(
      'payload is 102 bytes of JSON, more than the 100 allowed',
    );
  });
});

describe('if the store fails', () => {
  class Down extends InMemoryOutboxStore {
    override async enqueue(_events: readonly NewEvent[]): Promise<string[]> {
      throw new Error('the disk is full');
    }
  }
  const down = { store: new Down() };

  it('the event is emitted in memory, marked, under the id that is answered', async () => {
    await using app = await startApp({ outbox: down, providers: [Listener] });
    const answer = await app.outbox.enqueue('a', { n: 1 }, { m: 2 });
    expect(answer).toEqual({ id: expect.any(String), stored: false });
    const [event] = heard;
    expect(event).toMatchObject({
      n: 1,
      _outboxFailed: true,
      _outbox: { id: answer.id, eventType: 'a', metadata: { m: 2 }, attempt: 1, retryCount: 0 },
    });
    // A listener written for deliveries works here too.
    expect(event?._outbox.scheduledAt).toBeInstanceOf(Date);
    expect(event?._outbox.createdAt).toBeInstanceOf(Date);
    expect(event?._outbox.signal.aborted).toBe(false);
    expect(app.log.messages('error')).toEqual([
      `could not store a ${answer.id}, emitting it in memory without any guarantee: the disk is full`,
    ]);
  });

  it('many are emitted, each under its id', async () => {
    await using app = await startApp({ outbox: down, providers: [Listener] });
    const answers = await app.outbox.enqueueMany([
      { eventType: 'a', payload: { n: 1 }, id: ID },
      { eventType: 'a', payload: { n: 2 } },
    ]);
    expect(answers).toEqual([
      { id: ID, stored: false },
      { id: expect.any(String), stored: false },
    ]);
    expect(heard.map(({ _outbox }) => _outbox.id)).toEqual(answers.map(({ id }) => id));
  });

  it('a listener that fails then is logged, and enqueue does not reject', async () => {
    class Failing {
      @OnEvent('quiet')
      quiet(): void {
        throw new Error('quiet failed');
      }

      @OnEvent('loud', { suppressErrors: false })
      async loud(): Promise<void> {
        throw new Error('loud failed');
      }
    }
    await using app = await startApp({ outbox: down, providers: [Failing, Listener] });
    app.emitter.on('raw', () => {
      throw new Error('raw failed');
    });
    for (const eventType of ['quiet', 'loud', 'raw']) {
      expect(await app.outbox.enqueue(eventType, {})).toMatchObject({ stored: false });
    }
    await until(() => app.log.messages('error').length === 6, { what: 'all is said' });
    const said = app.log.messages('error').filter((line) => !line.startsWith('could not store'));
    expect(said.toSorted()).toEqual([
      expect.stringMatching(/^loud .* is lost to a listener that failed .*: loud failed$/),
      'quiet failed',
      expect.stringMatching(/^raw .* is lost to a listener that failed .*: raw failed$/),
    ]);
  });

  it('enqueue does not wait for the listeners', async () => {
    const end = deferred();
    class Slow {
      @OnEvent('slow')
      async handle(): Promise<void> {
        await end.promise;
      }
    }
    await using app = await startApp({ outbox: down, providers: [Slow] });
    expect(await app.outbox.enqueue('slow', {})).toMatchObject({ stored: false });
    end.resolve();
  });

  it('and nobody listens, it says that the event is lost', async () => {
    await using app = await startApp({ outbox: down });
    const { id } = await app.outbox.enqueue('a', {});
    expect(app.log.messages('error')).toContain(
      `a ${id} is lost: nobody listens to it in this process`,
    );
  });

  it('an event for later is not emitted early: the failure is thrown', async () => {
    await using app = await startApp({ outbox: down, providers: [Listener] });
    const later = new Date(Date.now() + MINUTE_MS);
    await expect(app.outbox.enqueue('a', {}, {}, { delayMs: 1 })).rejects.toThrow(
      'the disk is full',
    );
    await expect(app.outbox.enqueue('a', {}, {}, { scheduledAt: later })).rejects.toThrow(
      'the disk is full',
    );
    await expect(
      app.outbox.enqueueMany([
        { eventType: 'a', payload: {} },
        { eventType: 'a', payload: {}, delayMs: 1 },
      ]),
    ).rejects.toThrow('the disk is full');
    expect(heard).toEqual([]);
    await app.outbox.enqueue('a', {}, {}, { delayMs: 0, id: ID });
    await app.outbox.enqueue('a', {}, {}, { scheduledAt: new Date(0) });
    expect(heard).toHaveLength(2);
  });

  it("with onStoreFailure: 'throw' the failure is thrown and nothing is emitted", async () => {
    await using app = await startApp({
      outbox: { ...down, onStoreFailure: 'throw' },
      providers: [Listener],
    });
    await expect(app.outbox.enqueue('a', {})).rejects.toThrow('the disk is full');
    expect(heard).toEqual([]);
    expect(app.log.messages('error')).toEqual([]);
  });

  it('as PostgreSQL does when it is gone: emitted meanwhile, stored again afterwards', async () => {
    await using database = await createDatabase();
    await migrateOutbox({ database: database.pool });
    await using proxy = await startTcpProxy(database.connectionString);
    const pool = new pg.Pool({ connectionString: proxy.connectionString });
    pool.on('error', () => {});
    {
      await using app = await startApp({ outbox: { pool }, providers: [Listener] });
      proxy.refuse();
      proxy.dropAll();
      const lost = await app.outbox.enqueue('a', { n: 1 });
      expect(lost.stored).toBe(false);
      expect(heard).toEqual([expect.objectContaining({ n: 1, _outboxFailed: true })]);

      await proxy.restore();
      await until(async () => (await app.outbox.enqueue('a', { n: 2 })).stored, {
        what: 'events are stored again',
      });
      expect((await app.outbox.stats()).due).toBe(1);
    }
    await pool.end();
  });
});
