import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type { PoolClient } from 'pg';
import { until } from '../../support/until.js';
import { Subject, failed, idsOf } from '../conformance/subject.js';
import { openPostgres, type PostgresUnderTest } from './open-postgres.js';

describe('rows that another is taking in this moment', () => {
  const subject = new Subject();
  let opened: PostgresUnderTest;
  let other: PoolClient;
  beforeAll(async () => {
    opened = await openPostgres();
    subject.current = opened;
    // Whoever waits for a lock fails: every connection from now on.
    const { name, pool } = opened.database;
    await opened.database.query(`ALTER DATABASE ${name} SET lock_timeout = '250ms'`);
    await opened.database.terminateBackends();
    await until(() => pool.totalCount === 0, { what: 'the pool has noticed' });
    other = await opened.database.pool.connect();
  });
  beforeEach(() => opened.clear());
  afterAll(async () => {
    other.release();
    await opened[Symbol.asyncDispose]();
  });

  /** While the other has locked the first two of the ids. */
  async function whileLocked<T>(ids: string[], run: () => Promise<T>): Promise<T> {
    await other.query('BEGIN');
    try {
      await other.query(`SELECT FROM ${opened.names.events} WHERE id = ANY ($1) FOR UPDATE`, [
        ids.slice(0, 2),
      ]);
      return await run();
    } finally {
      await other.query('ROLLBACK');
    }
  }

  it.each<[string, () => Promise<string[]>]>([
    ['claim', async () => idsOf(await subject.claim(3))],
    [
      'claimOthers',
      async () =>
        idsOf(await subject.store.claimOthers({ otherThan: ['x'], limit: 3, leaseMs: 1_000 })),
    ],
    [
      'settleAndClaim',
      async () => {
        const request = { limit: 3, leaseMs: 1_000 };
        return idsOf((await subject.store.settleAndClaim([], request)).claimed);
      },
    ],
  ])('%s steps over them and takes the next, without waiting', async (_, claim) => {
    const ids = await subject.enqueueInOrder(6);
    expect(await whileLocked(ids, claim)).toEqual(ids.slice(2, 5));
  });

  it('reap steps over them and takes the next, without waiting', async () => {
    const ids = await subject.enqueueInOrder(4);
    await subject.claim();
    await subject.pass(600_000);
    const reaped = await whileLocked(ids, async () => idsOf(await subject.reap(9)));
    expect(reaped.toSorted()).toEqual(ids.slice(2).toSorted());
  });

  it.each<[string, () => Promise<string[]>]>([
    ['redrive', () => subject.store.redrive({ limit: 9, firstDelayMs: 0, spacingMs: 0 })],
    ['discard', () => subject.store.discard({ limit: 9 })],
  ])('%s steps over them and takes the next, without waiting', async (_, verb) => {
    const ids = await subject.dead({}, {}, {}, {});
    expect((await whileLocked(ids, verb)).toSorted()).toEqual(ids.slice(2).toSorted());
  });

  it('prune steps over them and takes the next, without waiting', async () => {
    const ids = [await subject.completed(), await subject.completed(), await subject.completed()];
    await subject.pass(1_000);
    const prune = () => subject.store.prune({ status: 'COMPLETED', olderThanMs: 0, limit: 9 });
    expect(await whileLocked(ids, prune)).toBe(1);
    expect(await subject.current.row(ids[2]!)).toBeNull();
  });

  it('reading waits for nobody', async () => {
    const ids = await subject.dead({}, {}, {});
    await whileLocked(ids, async () => {
      expect((await subject.store.deadLetters({ limit: 9 })).items).toHaveLength(3);
      expect(await subject.store.countDeadLetters({})).toBe(3);
      expect(await subject.store.find(ids[0]!)).toMatchObject({ status: 'FAILED' });
      expect(await subject.store.stats()).toMatchObject({ failed: 3 });
    });
  });

  it('settling under a stranger’s token waits for nobody: it looks before it locks', async () => {
    const [id] = await subject.enqueue({});
    const [claimed] = await subject.claim();
    const stranger = { ...claimed!, leaseToken: randomUUID() };
    await whileLocked([id!], async () => {
      expect(await subject.settle(stranger, failed())).toEqual([]);
      expect(await subject.store.renew([stranger], 1_000)).toEqual([]);
    });
  });
});
