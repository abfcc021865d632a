import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { migrateOutbox, outboxSql } from '../../src/index.js';
import { PostgresSentinelStore } from '../../src/store/postgres/postgres-sentinel-store.js';
import { sqlNames } from '../../src/store/postgres/sql-names.js';
import { type Cluster, startCluster } from '../../tools/postgres-cluster.js';
import { until } from '../support/until.js';

const LEASE = { key: 'k', version: '1', leaseToken: '11111111-1111-4111-8111-111111111111' };
const STRANGER = { ...LEASE, leaseToken: '22222222-2222-4222-8222-222222222222' };
const FAILURE = {
  failures: 1,
  sameFailures: 1,
  error: 'x',
  kind: 'unknown',
  closeMs: null,
} as const;

describe('the migration of the sentinels', () => {
  // A cluster of its own: roles belong to the whole of one.
  let cluster: Cluster;
  let pool: pg.Pool;
  const query = async (text: string, values?: unknown[]) =>
    (await pool.query<Record<string, unknown>>(text, values)).rows;

  beforeAll(async () => {
    cluster = await startCluster({ major: 18 });
    pool = new pg.Pool({ connectionString: cluster.connectionString() });
    await query('CREATE ROLE anon; CREATE ROLE authenticated; CREATE ROLE service_role BYPASSRLS');
    await migrateOutbox({ database: pool });
  });
  afterAll(async () => {
    await pool.end();
    await cluster.remove();
  });

  it('runs as it lies, and twice without harm', async () => {
    const [, sentinels] = (await outboxSql()).split(/^-- 00[67]_/m);
    const before = await query('SELECT version FROM outbox_migrations ORDER BY 1');
    await query(`-- 006_${sentinels}`);
    await query(`-- 006_${sentinels}`);
    expect(await query('SELECT version FROM outbox_migrations ORDER BY 1')).toEqual(before);
  });

  it('lets service_role do what the publisher does', async () => {
    await actAs('service_role');
  });

  it('serves a role that does not own it, with the grants that its notes name', async () => {
    await query('CREATE ROLE app');
    const [, sentinels] = (await outboxSql()).split(/^-- 00[67]_/m);
    const notes = sentinels!
      .split('\n')
      .filter((line) => /^-- {3}(GRANT|CREATE POLICY) /.test(line));
    expect(notes).toHaveLength(10);
    for (const note of notes) await query(note.slice(2));
    await actAs('app');
  });

  /** Every verb, in the name of that role. */
  async function actAs(role: string): Promise<void> {
    const client = await pool.connect();
    const connection = { query: client.query.bind(client), connect: () => pool.connect() };
    const store = new PostgresSentinelStore(connection, sqlNames());
    try {
      await client.query(`BEGIN; SET LOCAL ROLE ${role}`);
      const request = { ...LEASE, leaseMs: 60_000, heedStamp: true };
      expect(await store.claim(request)).toMatchObject({ answer: 'claimed', abandoned: false });
      expect(await store.claim({ ...STRANGER, leaseMs: 1, heedStamp: true })).toMatchObject({
        answer: 'running',
      });
      for (const answer of [
        await store.renew(STRANGER, 1),
        await store.stamp(STRANGER, true),
        await store.release(STRANGER),
      ])
        expect(answer).toBe(false);
      expect(await store.fail(STRANGER, FAILURE)).toBeNull();
      expect(await store.renew(LEASE, 60_000)).toBe(true);
      expect(await store.fail(LEASE, FAILURE)).toMatchObject({ failures: 1, lastError: 'x' });
      expect(await store.stats()).toEqual({ failing: 1, closed: 0 });
      expect(await store.reopen('k', undefined)).toBe(1);
      await store.claim(request);
      expect(await store.release(LEASE)).toBe(true);
      await store.claim(request);
      expect(await store.stamp(LEASE, true)).toBe(true);
      expect(await store.claim(request)).toMatchObject({ answer: 'stamped' });
      expect(await store.list({ limit: 9 })).toMatchObject([{ key: 'k', running: false }]);
    } finally {
      await client.query('ROLLBACK');
      client.release();
    }
  }

  it('lets two versions of a key claim one after the other, at whatever moment they come', async () => {
    const [first, second] = [await pool.connect(), await pool.connect()];
    const claim = `SELECT outbox_sentinel_claim('k', $1, true, gen_random_uuid(), 60000)->>'answer' AS answer`;
    try {
      await first.query('BEGIN');
      expect((await first.query(claim, ['1'])).rows).toEqual([{ answer: 'claimed' }]);
      const answered = second.query(claim, ['2']).then(({ rows }) => rows as object[]);
      await until(
        async () =>
          (await query(`SELECT FROM pg_stat_activity WHERE wait_event = 'advisory'`)).length === 1,
        { what: 'the second waits for the first' },
      );
      await first.query('COMMIT');
      expect(await answered).toEqual([{ answer: 'running' }]);
    } finally {
      first.release();
      second.release();
      await query('TRUNCATE outbox_sentinels');
    }
  });

  it('answers lists and counts from its own small index, however many sentinels are stamped', async () => {
    await query(
      `INSERT INTO outbox_sentinels (key, version, stamped_at, failures, failed_at)
       SELECT 'tenant-' || n, '1', now(), (n % 10000 = 0)::int, CASE WHEN n % 10000 = 0 THEN now() END
       FROM generate_series(1, 50000) AS n; ANALYZE outbox_sentinels`,
    );
    const [plan] = await query(
      'EXPLAIN (FORMAT JSON) SELECT count(*) FROM outbox_sentinels WHERE failures > 0',
    );
    expect(JSON.stringify(plan)).toContain('idx_outbox_sentinels_failing');
    await query('TRUNCATE outbox_sentinels');
  });
});
