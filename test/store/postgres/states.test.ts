import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { idsOf } from '../conformance/subject.js';
import { openPostgres, type PostgresUnderTest } from './open-postgres.js';

const STATES = ['PENDING', 'PROCESSING', 'COMPLETED', 'FAILED'] as const;
const TIMES = { null: null, past: '-1 hour', future: '1 hour' } as const;
type Time = keyof typeof TIMES;
const WHEN = Object.keys(TIMES) as Time[];

interface Combination {
  status: (typeof STATES)[number];
  token: boolean;
  leasedUntil: Time;
  scheduledAt: Time;
  processedAt: Time;
}

const COMBINATIONS: Combination[] = STATES.flatMap((status) =>
  [true, false].flatMap((token) =>
    WHEN.flatMap((leasedUntil) =>
      WHEN.flatMap((scheduledAt) =>
        WHEN.map((processedAt) => ({ status, token, leasedUntil, scheduledAt, processedAt })),
      ),
    ),
  ),
);

/** Who looks after such a row, now or when its time has come. */
const CARED_FOR_BY = {
  PENDING: 'claim',
  PROCESSING: 'reap',
  COMPLETED: 'prune',
  FAILED: 'dead letters',
} as const;

describe.each([14, 18] as const)('PostgreSQL %i: a row in whatever combination', (major) => {
  let subject: PostgresUnderTest;
  beforeAll(async () => {
    subject = await openPostgres({ major });
  });
  afterAll(async () => {
    await subject[Symbol.asyncDispose]();
  });

  /** Answers its id, or nothing if a constraint has refused it. */
  async function insert(row: Combination): Promise<string | undefined> {
    const id = randomUUID();
    try {
      await subject.database.query(
        `INSERT INTO ${subject.names.events}
           (id, event_type, payload, status, lease_token, leased_until, scheduled_at, processed_at)
         VALUES ($1, 'a', '{}', $2, $3,
                 now() + $4::interval, now() + $5::interval, now() + $6::interval)`,
        [
          id,
          row.status,
          row.token ? randomUUID() : null,
          TIMES[row.leasedUntil],
          TIMES[row.scheduledAt],
          TIMES[row.processedAt],
        ],
      );
      return id;
    } catch (error) {
      // 23514 check_violation, 23502 not_null_violation
      expect(['23514', '23502']).toContain((error as { code?: string }).code);
      return undefined;
    }
  }

  it('is refused, or found by the one who looks after it: none is lost', async () => {
    const stored = new Map<string, Combination>();
    for (const row of COMBINATIONS) {
      const id = await insert(row);
      if (id !== undefined) stored.set(id, row);
    }
    await subject.pass(2 * 3_600_000); // whatever its times say, they have come
    const { store } = subject;
    const dead = await store.deadLetters({ limit: 300 });
    const found = {
      claim: idsOf(await store.claim({ limit: 300, leaseMs: 60_000 })),
      reap: idsOf(await store.reap({ limit: 300, leaseMs: 60_000 })),
      'dead letters': idsOf(dead.items),
      prune: await prunedIds(),
    };
    for (const [id, row] of stored) {
      const caring = Object.entries(found).filter(([, ids]) => ids.includes(id));
      expect([row, caring.map(([who]) => who)]).toEqual([row, [CARED_FOR_BY[row.status]]]);
    }
    // A null schedule is always refused; a lease must be whole or not there at all.
    const counts = Object.entries(found).map(([who, ids]) => [who, ids.length]);
    expect(Object.fromEntries(counts)).toEqual({ claim: 6, reap: 12, 'dead letters': 4, prune: 4 });
    expect(stored.size).toBe(26);
  });

  async function prunedIds(): Promise<string[]> {
    const ids = async () =>
      idsOf(await subject.database.query<{ id: string }>(`SELECT id FROM ${subject.names.events}`));
    const before = await ids();
    await subject.store.prune({ status: 'COMPLETED', olderThanMs: 0, limit: 300 });
    const after = new Set(await ids());
    return before.filter((id) => !after.has(id));
  }

  it.each(['', 'pending', 'DONE', 'PENDING '])('is refused in the state %p', async (status) => {
    const inserting = subject.database.query(
      `INSERT INTO ${subject.names.events} (event_type, payload, status) VALUES ('a', '{}', $1)`,
      [status],
    );
    await expect(inserting).rejects.toThrow(/outbox_events_status_known/);
  });

  it('is refused with a negative count', async () => {
    const inserting = subject.database.query(
      `INSERT INTO ${subject.names.events} (event_type, payload, retry_count) VALUES ('a', '{}', -1)`,
    );
    await expect(inserting).rejects.toThrow(/check constraint "outbox_events_/);
  });

  it('that is PENDING and carries the time of an earlier end is not pruned', async () => {
    await subject.clear();
    await subject.database.query(
      `INSERT INTO ${subject.names.events} (event_type, payload, processed_at)
       VALUES ('a', '{}', now() - interval '1 year')`,
    );
    for (const status of ['PENDING', 'COMPLETED', 'FAILED']) {
      const request = { status: status as 'FAILED', olderThanMs: 0, limit: 9 };
      expect(await subject.store.prune(request)).toBe(0);
    }
    expect(await subject.store.stats()).toMatchObject({ due: 1 });
  });

  it('given by hand with nothing but type and payload is an event like any other', async () => {
    await subject.clear();
    const [row] = await subject.database.query<{ id: string }>(
      `INSERT INTO ${subject.names.events} (event_type, payload) VALUES ('by.hand', '{"a":1}') RETURNING id`,
    );
    expect(await subject.store.claim({ limit: 9, leaseMs: 1_000 })).toMatchObject([
      { id: row!.id, eventType: 'by.hand', payload: { a: 1 }, metadata: {}, retryCount: 0 },
    ]);
  });

  it('with a payload that is no object is handed over as it lies, next to the others', async () => {
    await subject.clear();
    await subject.database.query(
      `INSERT INTO ${subject.names.events} (event_type, payload)
       SELECT 'by.hand', payload::jsonb FROM unnest(ARRAY['[]', '"text"', '7', 'null', '{}']) AS payload`,
    );
    const claimed = await subject.store.claim({ limit: 9, leaseMs: 1_000 });
    expect(claimed.map(({ payload }) => JSON.stringify(payload)).toSorted()).toEqual([
      '"text"',
      '7',
      '[]',
      'null',
      '{}',
    ]);
  });
});
