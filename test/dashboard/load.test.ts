import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type pg from 'pg';
import { migrateOutbox } from '../../src/schema/migrate-outbox.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { startDashboard } from './dashboard-app.js';

const MILLION = 1_000_000;

interface Reads {
  readonly seqScans: number;
  readonly rows: number;
}

describe('the overview over a million finished events', () => {
  let db: TestDatabase;
  let client: pg.PoolClient;
  let statements: string[];

  beforeAll(async () => {
    db = await createDatabase();
    await migrateOutbox({ database: db.pool });
    await db.query(
      `INSERT INTO outbox_events (event_type, payload, status, processed_at)
       SELECT 'done', '{"n": 1}', 'COMPLETED', now() - n * interval '1 second' FROM generate_series(1, $1) AS n`,
      [MILLION],
    );
    await db.query(
      `INSERT INTO outbox_events (event_type, payload, status, retry_count, processed_at)
       SELECT 'dead', '{"n": 1}', 'FAILED', 5, now() - n * interval '1 second' FROM generate_series(1, 200) AS n`,
    );
    await db.query('VACUUM ANALYZE outbox_events');
    client = await db.pool.connect();
  }, 180_000);

  afterAll(async () => {
    client.release();
    await db.drop();
  });

  /** Everything through one session in a transaction, which counts what it reads. */
  function watchedPool(): pg.Pool {
    statements = [];
    const query = (async (...args: Parameters<pg.PoolClient['query']>) => {
      const [first] = args as unknown as [string | { text: string }];
      statements.push(typeof first === 'string' ? first : first.text);
      return client.query(...args);
    }) as unknown as pg.Pool['query'];
    const session = {
      query,
      release: () => {},
      on: () => {},
      off: () => {},
      removeListener: () => {},
    };
    return new Proxy(db.pool, {
      get(pool, key) {
        if (key === 'query') return query;
        if (key === 'connect') return async () => session;
        const value: unknown = Reflect.get(pool, key);
        return typeof value === 'function' ? value.bind(pool) : value;
      },
    });
  }

  async function reads(): Promise<Reads> {
    const { rows } = await client.query<{ seq: number; read: number }>(
      `SELECT coalesce(sum(pg_stat_get_xact_numscans(oid)) FILTER (WHERE relkind = 'r'), 0)::integer AS seq,
              coalesce(sum(pg_stat_get_xact_tuples_returned(oid)), 0)::integer AS read
       FROM pg_class WHERE relname LIKE '%outbox_events%' AND relkind IN ('r', 'i')`,
    );
    return { seqScans: rows[0]?.seq ?? -1, rows: rows[0]?.read ?? -1 };
  }

  it('scans no table of events, and ten that look at once are one reader', async () => {
    await using app = await startDashboard({ outbox: { pool: watchedPool() } });
    await client.query('BEGIN');
    const before = await reads();
    statements.length = 0;
    const pages = ['/outbox', '/outbox?span=day', '/outbox/activity.json?span=day'];
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => pages.map((page) => app.get(page))).flat(),
    );
    for (const answer of answers) {
      expect(answer.status).toBe(200);
      await answer.text();
    }
    const asked = statements.length;
    const after = await reads();
    await client.query('ROLLBACK');

    expect(after.seqScans - before.seqScans).toBe(0);
    // What is counted are the dead letters, and they were seen.
    expect(after.rows - before.rows).toBeGreaterThanOrEqual(200);
    expect(after.rows - before.rows).toBeLessThan(1_000);
    // Stats, relays, gates with their stats, and two spans of activity.
    expect(asked).toBeGreaterThan(0);
    expect(asked).toBeLessThanOrEqual(6);
  });

  it('answers within a moment', async () => {
    await using app = await startDashboard({ outbox: { pool: db.pool } });
    const startedAt = performance.now();
    const response = await app.get('/outbox');
    expect(response.status).toBe(200);
    expect(await response.text()).toMatch(/≈ (?:1,0|9)\d/);
    expect(performance.now() - startedAt).toBeLessThan(1_000);
  });
});
