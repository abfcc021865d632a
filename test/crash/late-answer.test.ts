import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type { PgClient, PgPool, PgQuery } from '../../src/store/postgres/pg-pool.js';
import { PostgresOutboxStore } from '../../src/store/postgres/postgres-outbox-store.js';
import { sqlNames } from '../../src/store/postgres/sql-names.js';
import { deferred, type Deferred } from '../support/until.js';

type Rows = { rows: Record<string, string | null>[] };

/** The application's pool, all of whose connections are busy until the test says otherwise. */
class BusyPool implements PgPool {
  readonly asked: { query: PgQuery; answer: Deferred<Rows> }[] = [];

  async query(query: PgQuery): Promise<Rows> {
    const answer = deferred<Rows>();
    this.asked.push({ query, answer });
    return answer.promise;
  }

  connect(): Promise<PgClient> {
    return new Promise(() => {});
  }
}

const ROW = {
  event_type: 'x',
  payload: '{}',
  metadata: '{}',
  retry_count: '0',
  acknowledged_by: '[]',
  scheduled_at: '0',
  created_at: '0',
  unheard_since: null,
  claimed_at: '0',
  lost: 'f',
};

const LIMITS = { limit: 10, leaseMs: 60_000 };

describe('a statement that waits for a connection of the application in vain', () => {
  let pool: BusyPool;
  let store: PostgresOutboxStore;

  beforeEach(() => {
    jest.useFakeTimers({ now: 0 });
    pool = new BusyPool();
    store = new PostgresOutboxStore(pool, sqlNames());
  });

  afterEach(() => {
    jest.useRealTimers();
  });

  /** Asks, waits until it is given up, and then lets the answer come all the same. */
  async function answeredLate(ask: () => Promise<unknown>, id: string): Promise<void> {
    const given = expect(ask()).rejects.toThrow('no answer from the database within 30000 ms');
    await jest.advanceTimersByTimeAsync(30_000);
    await given;
    pool.asked[0]?.answer.resolve({ rows: [{ id, ...ROW }] });
    await jest.advanceTimersByTimeAsync(0);
  }

  it.each([
    ['claim', () => store.claim(LIMITS)],
    ['claim together with settling', () => store.settleAndClaim([], LIMITS)],
    ['claim of other types', () => store.claimOthers({ ...LIMITS, otherThan: [] })],
  ])('ends, and what a late %s still brings is given back', async (_what, ask) => {
    const id = randomUUID();
    await answeredLate(ask, id);
    expect(pool.asked).toHaveLength(2);
    const [, release] = pool.asked;
    expect(release?.query.text).toMatch(/outbox_settle/);
    expect(JSON.stringify(release?.query.values)).toContain(id);
    expect(JSON.stringify(release?.query.values)).toContain('PENDING');
  });

  it('ends, and what a late reap still brings waits for the next reaper: its crash is to be counted', async () => {
    await answeredLate(() => store.reap(LIMITS), randomUUID());
    expect(pool.asked).toHaveLength(1);
  });

  it('that was answered in time leaves no timer behind', async () => {
    const claimed = store.claim(LIMITS);
    pool.asked[0]?.answer.resolve({ rows: [] });
    expect(await claimed).toEqual([]);
    expect(jest.getTimerCount()).toBe(0);
  });
});
