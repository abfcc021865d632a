import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { migrateOutbox } from '../../src/migrate-outbox.js';
import { createDatabase, type TestDatabase } from '../support/database.js';

const DUE = 2_000;
const EXPIRED = 50;
const FAILED = 500;

/** What a statement did to the table, as PostgreSQL itself counted it: the plan that ran, inside functions too. */
interface Scans {
  seqScans: number;
  /** Entries read from each index that was looked into. */
  read: Record<string, number>;
}

describe.each([
  [14, 200_000, 20_000],
  [18, 1_000_000, 100_000],
] as const)(
  'on PostgreSQL %i, with %i completed events and %i delayed ones around',
  (major, completed, delayed) => {
    let db: TestDatabase;
    let client: pg.PoolClient;

    beforeAll(async () => {
      db = await createDatabase(major);
      await migrateOutbox({ database: db.pool });
      await fill(db, completed, delayed);
      client = await db.pool.connect();
    }, 180_000);

    afterAll(async () => {
      client.release();
      await db.drop();
    });

    /** Runs a statement in a transaction, then takes it back. Several times, for a plan may change once it is cached. */
    async function scansOf(text: string, values: unknown[] = []): Promise<Scans> {
      for (let run = 1; ; run++) {
        await client.query('BEGIN');
        const before = await counters(client);
        await client.query(text, values);
        const scans = difference(await counters(client), before);
        await client.query('ROLLBACK');
        if (scans.seqScans > 0 || run === 8) return scans;
      }
    }

    const id = randomUUID();
    const leases = JSON.stringify([{ id, lease_token: id }]);
    const settlements = JSON.stringify(
      Array.from({ length: 100 }, () => ({ id: randomUUID(), lease_token: id, status: 'PENDING' })),
    );
    const ids = Array.from({ length: 1_000 }, () => randomUUID());

    it.each([
      // The first of all: what others claim and take back leaves entries in this index.
      [
        'the list of events in flight',
        `SELECT outbox_list('processing', NULL, NULL, NULL, 50)`,
        [],
        'idx_outbox_events_leased_until',
        2 * EXPIRED,
      ],
      [
        'claim',
        `SELECT outbox_claim(100, 60000, $1, NULL)`,
        [id],
        'idx_outbox_events_status_scheduled',
        110,
      ],
      [
        'claim of a thousand',
        `SELECT outbox_claim(1000, 60000, $1, NULL)`,
        [id],
        'idx_outbox_events_status_scheduled',
        1_100,
      ],
      [
        'claim from a bound',
        `SELECT outbox_claim(100, 60000, $1, now() - interval '1 day')`,
        [id],
        'idx_outbox_events_status_scheduled',
        110,
      ],
      [
        'reap',
        `SELECT outbox_reap(100, 60000, $1)`,
        [id],
        'idx_outbox_events_leased_until',
        EXPIRED,
      ],
      ['settle', `SELECT outbox_settle($1)`, [settlements], 'outbox_events_pkey', 100],
      [
        'settle and claim',
        `SELECT outbox_settle_and_claim($1, $1, '[]', 0, 60000, NULL, NULL)`,
        [ids],
        'outbox_events_pkey',
        1_000,
      ],
      ['renew', `SELECT outbox_renew($1, 60000)`, [leases], 'outbox_events_pkey', 1],
      [
        'redrive by id',
        `SELECT outbox_redrive($1, NULL, NULL, NULL, NULL, 100, 0, 10)`,
        [[id]],
        'outbox_events_pkey',
        1,
      ],
      [
        'redrive of all',
        `SELECT outbox_redrive(NULL, NULL, NULL, NULL, NULL, 100, 0, 10)`,
        [],
        'idx_outbox_events_processed',
        110,
      ],
      [
        'discard of all',
        `SELECT outbox_discard(NULL, NULL, NULL, NULL, NULL, 100)`,
        [],
        'idx_outbox_events_processed',
        110,
      ],
      [
        'prune',
        `SELECT outbox_prune('COMPLETED', 0, 1000)`,
        [],
        'idx_outbox_events_processed',
        1_100,
      ],
      [
        'the first page of dead letters',
        `SELECT outbox_dead_letters(NULL, NULL, NULL, NULL, NULL, NULL, NULL, 50)`,
        [],
        'idx_outbox_events_processed',
        FAILED,
      ],
      [
        'a search in dead letters',
        `SELECT outbox_dead_letters(NULL, NULL, 'nowhere', NULL, NULL, NULL, NULL, 50)`,
        [],
        'idx_outbox_events_processed',
        FAILED,
      ],
      [
        'the list of due events',
        `SELECT outbox_list('due', NULL, NULL, NULL, 50)`,
        [],
        'idx_outbox_events_status_scheduled',
        110,
      ],
      [
        'the next page of scheduled events',
        `SELECT outbox_list('scheduled', NULL, now() + interval '1 day 1 hour', $1, 50)`,
        [id],
        'idx_outbox_events_status_scheduled',
        110,
      ],
      [
        'the list of due events of one type',
        `SELECT outbox_list('due', 'due', NULL, NULL, 50)`,
        [],
        'idx_outbox_events_type_scheduled',
        110,
      ],
      [
        'enqueue of one',
        `SELECT outbox_enqueue_one($1, 'a', '{}', '{}', NULL, NULL)`,
        [id],
        'outbox_events_pkey',
        1,
      ],
      [
        'enqueue',
        `SELECT outbox_enqueue($1)`,
        [JSON.stringify([{ id, event_type: 'a', payload: {} }])],
        'outbox_events_pkey',
        1,
      ],
      ['find', `SELECT * FROM outbox_events WHERE id = $1`, [id], 'outbox_events_pkey', 1],
    ] as [string, string, unknown[], string, number][])(
      '%s reads an index, and not more of it than it must',
      async (_, text, values, index, most) => {
        const { seqScans, read } = await scansOf(text, values);
        expect(seqScans).toBe(0);
        const used = Object.keys(read);
        expect(used).toEqual([index]);
        for (const entries of Object.values(read)) expect(entries).toBeLessThanOrEqual(most);
      },
    );

    it('stats reads partial indexes only, and not what is completed', async () => {
      const { seqScans, read } = await scansOf('SELECT outbox_stats()');
      expect(seqScans).toBe(0);
      const entries = Object.values(read).reduce((a, b) => a + b, 0);
      // Half as much again: entries of what the other tests took back are still there.
      expect(entries).toBeLessThan(1.5 * (DUE + delayed + FAILED + EXPIRED));
    });
  },
);

async function fill(db: TestDatabase, completed: number, delayed: number): Promise<void> {
  await db.query(
    `INSERT INTO outbox_events (event_type, payload, status, processed_at)
     SELECT 'done', '{"n": 1}', 'COMPLETED', now() - n * interval '1 second' FROM generate_series(1, $1) AS n`,
    [completed],
  );
  await db.query(
    `INSERT INTO outbox_events (event_type, payload, scheduled_at)
     SELECT 'later', '{"n": 1}', now() + interval '1 day' + n * interval '1 second' FROM generate_series(1, $1) AS n`,
    [delayed],
  );
  await db.query(
    `INSERT INTO outbox_events (event_type, payload, scheduled_at)
     SELECT 'due', '{"n": 1}', now() - n * interval '1 second' FROM generate_series(1, $1) AS n`,
    [DUE],
  );
  await db.query(
    `INSERT INTO outbox_events (event_type, payload, status, lease_token, leased_until)
     SELECT 'held', '{"n": 1}', 'PROCESSING', gen_random_uuid(), now() - interval '1 second' FROM generate_series(1, $1)`,
    [EXPIRED],
  );
  await db.query(
    `INSERT INTO outbox_events (event_type, payload, status, retry_count, processed_at)
     SELECT 'dead', '{"n": 1}', 'FAILED', 5, now() - n * interval '1 second' FROM generate_series(1, $1) AS n`,
    [FAILED],
  );
  await db.query('VACUUM ANALYZE outbox_events');
}

/** Counted since the session began. */
async function counters(client: pg.PoolClient): Promise<Scans> {
  const { rows } = await client.query<{
    name: string;
    is_table: boolean;
    scans: number;
    read: number;
  }>(
    `SELECT relname AS name, relkind = 'r' AS is_table,
            pg_stat_get_xact_numscans(oid)::integer AS scans,
            pg_stat_get_xact_tuples_returned(oid)::integer AS read
     FROM pg_class WHERE relname LIKE '%outbox_events%' AND relkind IN ('r', 'i')`,
  );
  return {
    seqScans: rows.find(({ is_table }) => is_table)?.scans ?? 0,
    read: Object.fromEntries(
      rows
        .filter(({ is_table }) => !is_table)
        .flatMap(({ name, scans, read }) => [
          [name, read],
          [`${name} scans`, scans],
        ]),
    ),
  };
}

function difference(after: Scans, before: Scans): Scans {
  const change = (key: string): number => (after.read[key] ?? 0) - (before.read[key] ?? 0);
  const used = Object.keys(after.read).filter((name) => change(`${name} scans`) > 0);
  return {
    seqScans: after.seqScans - before.seqScans,
    read: Object.fromEntries(used.map((name) => [name, change(name)])),
  };
}
