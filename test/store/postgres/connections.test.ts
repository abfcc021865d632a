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
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { migrate } from '../../../src/schema/migrate.js';
import type { DeadLetterFilter, Lease, Settlement } from '../../../src/store/outbox-store.js';
import type { PgPool, PgQuery } from '../../../src/store/postgres/pg-pool.js';
import { PostgresOutboxStore } from '../../../src/store/postgres/postgres-outbox-store.js';
import { failed, idsOf, leaseOf, newEvent, retry } from '../conformance/subject.js';
import { openPostgres, type PostgresUnderTest } from './open-postgres.js';
import { sqlNames } from '../../../src/store/postgres/sql-names.js';
import { startTcpProxy } from '../../support/tcp-proxy.js';
import { shiftDate } from '../../support/shifted-date.js';

const CLAIM = { limit: 10, leaseMs: 60_000 };
const JSON_OIDS = new Set([114, 3802]); // json, jsonb
const REDRIVE = { limit: 10, firstDelayMs: 0, spacingMs: 0 };

let subject: PostgresUnderTest;
beforeAll(async () => {
  subject = await openPostgres();
});
beforeEach(() => subject.clear());
afterAll(async () => {
  await subject[Symbol.asyncDispose]();
});

/** Everything the store does to an event, from its first to its last day. */
async function liveThrough(store: PostgresOutboxStore): Promise<unknown> {
  const event = newEvent({
    payload: { n: 1, list: [], text: '10.5', at: '2026-01-01T00:00:00.000Z' },
    metadata: { m: [1] },
  });
  await store.check();
  expect(await store.enqueue([event])).toEqual([event.id]);
  const [first] = await store.claim(CLAIM);
  expect(await store.renew([first!], 60_000)).toEqual([event.id]);
  expect(
    await store.settle([
      { ...leaseOf(first!), ...retry({ delayMs: 0, acknowledgedBy: ['A.one'] }) },
    ]),
  ).toEqual([event.id]);
  const [second] = await store.claimOthers({ ...CLAIM, otherThan: ['other'] });
  expect(await store.reap(CLAIM)).toEqual([]);
  const { settled } = await store.settleAndClaim([{ ...leaseOf(second!), ...failed() }], CLAIM);
  expect(settled).toEqual(new Set([event.id]));
  const { items } = await store.deadLetters({ limit: 1 });
  expect(await store.countDeadLetters({ eventType: event.eventType })).toBe(1);
  expect(await store.redrive(REDRIVE)).toEqual([event.id]);
  const found = await store.find(event.id);
  const stats = await store.stats();
  const [third] = await store.claim(CLAIM);
  await store.settle([{ ...leaseOf(third!), ...failed() }]);
  expect(await store.prune({ status: 'COMPLETED', olderThanMs: 0, limit: 1 })).toBe(0);
  expect(await store.discard({ limit: 1 })).toEqual([event.id]);
  return { first, second, items, found, stats };
}

function completed(event: Lease): Settlement {
  return { ...leaseOf(event), outcome: 'completed' };
}

describe('the pool is the user’s', () => {
  it('it is not ended, and nobody listens to it or to its clients', async () => {
    const pool = new pg.Pool({ connectionString: subject.database.connectionString });
    try {
      const client = await pool.connect();
      client.release();
      const listeners = () => ({
        pool: Object.fromEntries(pool.eventNames().map((name) => [name, pool.listenerCount(name)])),
        client: Object.fromEntries(
          client.eventNames().map((name) => [name, client.listenerCount(name)]),
        ),
      });
      const before = listeners();
      const store = new PostgresOutboxStore(pool, subject.names);
      for (let round = 0; round < 3; round++) await liveThrough(store);
      await migrate(pool, subject.names);
      await store.close();
      expect(listeners()).toEqual(before);
      expect(pool.ended).toBe(false);
      expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
      expect(pool.totalCount).toBe(pool.idleCount);
    } finally {
      await pool.end();
    }
  });

  it('its connections may be cut at any time: the next statement takes another', async () => {
    await subject.store.enqueue([newEvent()]);
    await subject.database.terminateBackends();
    const claims = await Promise.allSettled([subject.store.claim(CLAIM), subject.store.stats()]);
    expect(claims).toHaveLength(2);
    expect(await subject.store.find(randomUUID())).toBeNull();
  });

  it('one connection is enough, also for what is done at the same time', async () => {
    const pool = new pg.Pool({ connectionString: subject.database.connectionString, max: 1 });
    try {
      const store = new PostgresOutboxStore(pool, subject.names);
      await Promise.all([
        store.enqueue([newEvent()]),
        store.claim(CLAIM),
        store.stats(),
        store.check(),
        migrate(pool, subject.names),
      ]);
      expect(pool.totalCount).toBe(1);
    } finally {
      await pool.end();
    }
  });
});

describe('however the application’s connection is set up', () => {
  /** Without what differs from run to run; a time must be about now. */
  function shape(lived: unknown): unknown {
    const text = JSON.stringify(lived, (key, value: unknown) => {
      if (['id', 'leaseToken'].includes(key)) return 'uuid';
      if (key === 'oldestDueAgeMs') return typeof value;
      const isNow = typeof value === 'string' && Math.abs(Date.parse(value) - Date.now()) < 60_000;
      return isNow ? 'now' : value;
    });
    return JSON.parse(text);
  }

  let expected: unknown;
  beforeAll(async () => {
    await subject.clear();
    expected = shape(await liveThrough(subject.store));
  });

  const hostileParser = (): never => {
    throw new Error('this parser must not be asked');
  };

  it.each<[string, pg.PoolConfig]>([
    [
      'with type parsers of its own for everything',
      { types: { getTypeParser: () => hostileParser } },
    ],
    ['in another time zone', { options: '-c TimeZone=Asia/Kathmandu' }],
    [
      'writing dates the German way',
      { options: '-c DateStyle=German,DMY -c TimeZone=Asia/Kolkata' },
    ],
    ['writing dates the SQL way', { options: '-c DateStyle=SQL,DMY -c TimeZone=America/St_Johns' }],
    [
      'writing intervals and floats another way',
      { options: '-c IntervalStyle=sql_standard -c extra_float_digits=0' },
    ],
    ['with a search_path that leads elsewhere', { options: '-c search_path=nowhere' }],
    [
      'with an isolation level of its own',
      { options: '-c default_transaction_isolation=serializable' },
    ],
    [
      'with standard strings off',
      { options: '-c standard_conforming_strings=off -c backslash_quote=on' },
    ],
    [
      'without hash joins, index scans and TID scans',
      { options: '-c enable_hashjoin=off -c enable_indexscan=off -c enable_tidscan=off' },
    ],
  ])('%s, the store does the same', async (_, config) => {
    const pool = new pg.Pool({ connectionString: subject.database.connectionString, ...config });
    try {
      const store = new PostgresOutboxStore(pool, subject.names);
      expect(shape(await liveThrough(store))).toEqual(expected);
    } finally {
      await pool.end();
    }
  });

  it('type parsers set for the whole process do not matter either', async () => {
    const { builtins } = pg.types;
    const touched = [
      builtins.JSON,
      builtins.JSONB,
      builtins.TIMESTAMPTZ,
      builtins.INT8,
      builtins.INT4,
      builtins.FLOAT8,
      builtins.UUID,
      builtins.TEXT,
      builtins.VARCHAR,
      builtins.BOOL,
    ];
    const before = touched.map((type) => [type, pg.types.getTypeParser(type)] as const);
    for (const type of touched) pg.types.setTypeParser(type, hostileParser);
    try {
      const pool = new pg.Pool({ connectionString: subject.database.connectionString });
      const store = new PostgresOutboxStore(pool, subject.names);
      try {
        await liveThrough(store);
      } finally {
        await pool.end();
      }
    } finally {
      for (const [type, parser] of before) pg.types.setTypeParser(type, parser);
    }
    expect(shape(await liveThrough(subject.store))).toEqual(expected);
  });

  it.each<[string, (json: string) => unknown]>([
    ['text', (json) => json],
    ['an object of its own', (json) => ({ wrapped: json })],
    ['objects with BigInts', (json) => JSON.parse(json)],
  ])('the caller’s transaction may read JSON as %s', async (_, parser) => {
    const client = new pg.Client({
      connectionString: subject.database.connectionString,
      types: {
        getTypeParser: (oid: number) => (JSON_OIDS.has(oid) ? parser : (value: string) => value),
      },
    });
    await client.connect();
    try {
      await client.query('BEGIN');
      const event = newEvent();
      expect(await subject.store.enqueue([event], client)).toEqual([event.id]);
      expect(await subject.store.enqueue([event], client)).toEqual([]);
      await client.query('COMMIT');
      expect(await subject.store.find(event.id)).toMatchObject({ status: 'PENDING' });
    } finally {
      await client.end();
    }
  });
});

describe('a verb is one statement', () => {
  function counting(): { store: PostgresOutboxStore; statements: string[] } {
    const statements: string[] = [];
    const pool: PgPool = {
      query: async (query: PgQuery) => {
        statements.push(query.text);
        return subject.database.pool.query(query as pg.QueryConfig);
      },
      connect: () => {
        statements.push('(a connection of its own)');
        return subject.database.pool.connect();
      },
    };
    return { store: new PostgresOutboxStore(pool, subject.names), statements };
  }

  type Verb = (store: PostgresOutboxStore) => Promise<unknown>;
  const held = { id: randomUUID(), leaseToken: randomUUID() };

  it.each<[string, Verb]>([
    ['enqueue', (store) => store.enqueue(Array.from({ length: 50 }, () => newEvent()))],
    ['claim', (store) => store.claim(CLAIM)],
    ['claimOthers', (store) => store.claimOthers({ ...CLAIM, otherThan: ['a'] })],
    [
      'settle',
      (store) =>
        store.settle([
          { ...held, outcome: 'completed' },
          { ...held, ...retry() },
        ]),
    ],
    ['settleAndClaim', (store) => store.settleAndClaim([{ ...held, outcome: 'completed' }], CLAIM)],
    ['renew', (store) => store.renew([held], 1_000)],
    ['reap', (store) => store.reap(CLAIM)],
    ['redrive', (store) => store.redrive(REDRIVE)],
    ['discard', (store) => store.discard({ limit: 10 })],
    ['prune', (store) => store.prune({ status: 'FAILED', olderThanMs: 0, limit: 10 })],
    ['deadLetters', (store) => store.deadLetters({ limit: 10 })],
    ['countDeadLetters', (store) => store.countDeadLetters({})],
    ['find', (store) => store.find(held.id)],
    ['stats', (store) => store.stats()],
  ])('%s', async (_, verb) => {
    const { store, statements } = counting();
    await verb(store);
    expect(statements).toHaveLength(1);
    expect(statements[0]).not.toMatch(/;/);
  });

  it.each<[string, Verb]>([
    ['settle', (store) => store.settle([])],
    ['renew', (store) => store.renew([], 1_000)],
  ])('%s of nothing is none', async (_, verb) => {
    const { store, statements } = counting();
    await verb(store);
    expect(statements).toEqual([]);
  });
});

describe('all or nothing', () => {
  it('one event that cannot be stored takes the others with it', async () => {
    const good = newEvent();
    const bad = newEvent({ eventType: 'x'.repeat(256) });
    await expect(subject.store.enqueue([good, bad])).rejects.toThrow(/too long/);
    expect(await subject.store.find(good.id)).toBeNull();
  });

  it('one outcome that cannot be stored leaves every event as it was, and claims none', async () => {
    await subject.store.enqueue([newEvent(), newEvent(), newEvent()]);
    const [a, b] = await subject.store.claim({ ...CLAIM, limit: 2 });
    const impossible = { ...leaseOf(b!), ...retry({ retryCount: -1 }) };
    const settlements = [{ ...leaseOf(a!), outcome: 'completed' } as const, impossible];
    await expect(subject.store.settle(settlements)).rejects.toThrow(/check constraint/);
    await expect(subject.store.settleAndClaim(settlements, CLAIM)).rejects.toThrow(
      /check constraint/,
    );
    expect(await subject.store.stats()).toMatchObject({ processing: 2, due: 1 });
    const settled = await subject.store.settle([a!, b!].map(completed));
    expect(settled.toSorted()).toEqual([a!.id, b!.id].toSorted());
  });
});

describe('only the database’s clock counts', () => {
  afterEach(() => {
    jest.useRealTimers();
  });

  it.each([
    ['ten minutes slow', -600_000],
    ['ten minutes fast', 600_000],
    ['three hours fast', 3 * 3_600_000],
  ])('an application whose clock is %s sees everything at its time', async (_, offsetMs) => {
    shiftDate(Date.now() + offsetMs);
    const { store } = subject;
    const [a, b] = [newEvent(), newEvent({ delayMs: 120_000 })];
    await store.enqueue([a, b]);
    const [claimed, ...others] = await store.claim(CLAIM);
    expect(claimed).toMatchObject({ id: a.id });
    expect(others).toEqual([]);
    expect(Math.abs(claimed!.claimedAt.getTime() - (await subject.now()))).toBeLessThan(10_000);

    expect(await store.reap(CLAIM)).toEqual([]);
    await subject.pass(60_001);
    const [reaped] = await store.reap(CLAIM);
    expect(reaped).toMatchObject({ id: a.id });

    await store.settle([{ ...leaseOf(reaped!), ...retry({ delayMs: 120_000 }) }]);
    const { scheduledAt } = (await subject.row(a.id))!;
    expect(Math.abs(scheduledAt - (await subject.now()) - 120_000)).toBeLessThan(10_000);

    await subject.pass(120_000);
    const due = await store.claim(CLAIM);
    expect(idsOf(due).toSorted()).toEqual([a.id, b.id].toSorted());
    await store.settle(due.map(completed));
    expect(await store.prune({ status: 'COMPLETED', olderThanMs: 30_000, limit: 9 })).toBe(0);
    await subject.pass(31_000);
    expect(await store.prune({ status: 'COMPLETED', olderThanMs: 30_000, limit: 9 })).toBe(2);
  });
});

describe('dead letters to the microsecond', () => {
  const moment = new Date('2026-05-06T07:08:09.123Z');
  const next = new Date(moment.getTime() + 1);

  /** One microsecond before the moment, on it, just before the next millisecond, and on that. */
  async function insertAround(): Promise<void> {
    await subject.database.query(
      `INSERT INTO ${subject.names.events} (event_type, payload, status, processed_at)
       SELECT 'a', '{}', 'FAILED', $1::timestamptz + n * interval '1 microsecond'
       FROM unnest(ARRAY[-1, 0, 999, 1000]) AS n`,
      [moment.toISOString()],
    );
  }

  it.each<[string, (filter: DeadLetterFilter) => Promise<number>]>([
    ['redriven', async (filter) => (await subject.store.redrive({ ...REDRIVE, ...filter })).length],
    ['discarded', async (filter) => (await subject.store.discard({ limit: 9, ...filter })).length],
    ['counted', (filter) => subject.store.countDeadLetters(filter)],
    [
      'listed',
      async (filter) => (await subject.store.deadLetters({ limit: 9, ...filter })).items.length,
    ],
  ])('are %s from the first moment on, and up to the last without it', async (_, verb) => {
    await insertAround();
    expect(await verb({ failedAfter: moment, failedBefore: moment })).toBe(0);
    expect(await verb({ failedBefore: moment })).toBe(1);
    await subject.clear();
    await insertAround();
    expect(await verb({ failedAfter: moment, failedBefore: next })).toBe(2);
  });

  it.each(['ISO,YMD', 'SQL,DMY', 'German,DMY', 'Postgres,MDY'])(
    'are paged without a gap or a double, also where dates are written as %s',
    async (dateStyle) => {
      const { database, names } = subject;
      await database.query(
        `INSERT INTO ${names.events} (event_type, payload, status, processed_at)
         SELECT 'a', jsonb_build_object('n', n), 'FAILED',
                '2026-05-06 07:08:09.123456+00'::timestamptz + (n / 2) * interval '1 microsecond'
         FROM generate_series(1, 21) AS n`,
      );
      const pool = new pg.Pool({
        connectionString: database.connectionString,
        options: `-c DateStyle=${dateStyle} -c TimeZone=Asia/Kolkata`,
      });
      try {
        const store = new PostgresOutboxStore(pool, names);
        const seen: number[] = [];
        for (let after: string | null | undefined = undefined; after !== null;) {
          const page = await store.deadLetters({ limit: 4, ...(after !== undefined && { after }) });
          seen.push(...page.items.map(({ payload }) => payload['n'] as number));
          after = page.next;
        }
        expect(seen).toHaveLength(21);
        expect(new Set(seen).size).toBe(21);
        // Two that share a microsecond may come in either order.
        expect(seen.map((n) => Math.floor(n / 2))).toEqual(
          seen.map((n) => Math.floor(n / 2)).toSorted((a, b) => b - a),
        );
      } finally {
        await pool.end();
      }
    },
  );
});

describe('an enqueue without a transaction', () => {
  it('whose connection was cut a moment ago is written on another one, once', async () => {
    await using proxy = await startTcpProxy(subject.database.connectionString);
    const pool = new pg.Pool({ connectionString: proxy.connectionString, max: 1 });
    pool.on('error', () => {});
    try {
      const store = new PostgresOutboxStore(pool, sqlNames());
      await store.check();
      const event = newEvent();
      const cut = pool.once('acquire', () => proxy.dropAll());
      expect(await store.enqueue([event])).toEqual([event.id]);
      expect(cut.listenerCount('acquire')).toBe(0);
      expect(await store.stats()).toMatchObject({ due: 1 });
    } finally {
      await pool.end();
    }
  });

  it('is not repeated on a connection of the caller’s, nor when the server has refused it', async () => {
    let calls = 0;
    const failing = (error: Error): PgPool => ({
      query: async () => {
        calls++;
        throw error;
      },
      connect: async () => {
        throw error;
      },
    });
    const lost = Object.assign(new Error('cut'), { code: 'ECONNRESET' });
    const refused = Object.assign(new Error('no'), { code: '42501' });
    const store = new PostgresOutboxStore(failing(refused), sqlNames());
    await expect(store.enqueue([newEvent()])).rejects.toThrow('no');
    await expect(store.enqueue([newEvent()], failing(lost) as never)).rejects.toThrow('cut');
    expect(calls).toBe(2);
  });
});
