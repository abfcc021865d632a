import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { CHECKS } from '../../src/doctor/checks.js';
import { EXPECTED_CONSTRAINTS, EXPECTED_INDEXES } from '../../src/doctor/expected-schema.js';
import type { Level } from '../../src/doctor/finding.js';
import { PatientDatabase } from '../../src/doctor/patient.js';
import { openBoss } from '../../src/relay/open-boss.js';
import { PgBossTicks } from '../../src/relay/ticks.js';
import { migrateOutbox, outboxSql } from '../../src/schema/migrate-outbox.js';
import { PostgresOutboxStore } from '../../src/store/postgres/postgres-outbox-store.js';
import { sqlNames } from '../../src/store/postgres/sql-names.js';
import { startCluster, type Cluster } from '../../tools/postgres-cluster.js';
import { cli } from '../cli/run-cli.js';
import { RecordingLogger } from '../support/logger.js';
import { describeWithPooler, startPooler } from '../support/pgbouncer.js';
import { shiftDate } from '../support/shifted-date.js';
import { until } from '../support/until.js';
import { admit, asAdmin, type Sick } from './clinic.js';

const broken = new Set<string>();

/** Exactly one finding, of that check. */
async function found(
  sick: Sick,
  check: string,
  level: Level,
  what: RegExp,
  changes: Parameters<Sick['findings']>[0] = {},
): Promise<string> {
  const findings = await sick.findings(changes);
  expect(findings).toEqual([
    {
      check,
      level,
      what: expect.stringMatching(what),
      why: expect.stringMatching(/.{20}/),
      fix: expect.stringMatching(/.{10}/),
    },
  ]);
  broken.add(check);
  return findings[0]!.fix;
}

async function settled(sick: Sick, setting: string, value: string): Promise<void> {
  await until(
    async () =>
      (await sick.query<{ value: string }>(`SELECT current_setting('${setting}') AS value`))[0]!
        .value === value,
    { what: `${setting} is ${value}` },
  );
}

const report = (changes: object = {}) => ({
  relayId: randomUUID(),
  name: 'host:1',
  version: '0.1.0',
  listeners: [{ name: 'A.on', event: 'a.b' }],
  number: 1,
  stopped: false,
  activity: [],
  ...changes,
});

const EVENT = `INSERT INTO outbox_events (event_type, payload`;

describe.each([18, 14] as const)('the doctor on PostgreSQL %i', (major) => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster({
      major,
      durable: true,
      settings: { max_prepared_transactions: '5', max_connections: '20' },
    });
  });
  afterAll(() => cluster.remove());
  afterEach(() => {
    jest.useRealTimers();
  });

  it('finds nothing in an outbox that is new, and every check but that of the ticks has looked', async () => {
    await using sick = await admit(cluster);
    const { findings, checks } = await sick.examine();
    expect(findings).toEqual([]);
    expect(checks.map(({ check }) => check)).toEqual(CHECKS.map(({ name }) => name));
    expect(checks.filter(({ ran }) => !ran)).toMatchObject([{ check: 'ticks' }]);
  });

  it('finds nothing under other names, and the fixes name them', async () => {
    const names = sqlNames('tenant-1', 'billing_outbox_events');
    await using sick = await admit(cluster, { names });
    expect(await sick.findings()).toEqual([]);
    await sick.run('DROP INDEX "tenant-1".idx_billing_outbox_events_unheard');
    await sick.run(
      await found(sick, 'indexes', 'error', /idx_billing_outbox_events_unheard is missing/),
    );
    await sick.run('DROP FUNCTION "tenant-1".billing_outbox_prune');
    expect(
      await found(sick, 'functions', 'error', /billing_outbox_prune\(.* is missing/),
    ).toContain('migrate --print --schema tenant-1 --table billing_outbox_events');
    await sick.run(await outboxSql({ schema: 'tenant-1', table: 'billing_outbox_events' }));
    expect(await sick.findings()).toEqual([]);
  });

  it('finds nothing after the SQL was run as it lies', async () => {
    await using sick = await admit(cluster, { migrated: false });
    await sick.query(await outboxSql());
    expect(await sick.findings()).toEqual([]);
  });

  it('finds an outbox that is missing, older or newer', async () => {
    await using sick = await admit(cluster, { migrated: false });
    expect(await found(sick, 'schema-version', 'error', /has no outbox yet/)).toBe(
      'npx nestjs-outbox-relay migrate',
    );
    const { checks } = await sick.examine();
    expect(checks.find(({ check }) => check === 'dead-letters')).toMatchObject({ ran: false });

    await migrateOutbox({ database: sick.connectionString });
    expect(await sick.findings()).toEqual([]);
    await sick.run('DELETE FROM outbox_migrations WHERE version > 5');
    await found(sick, 'schema-version', 'error', /is at outbox version 5/);
    await migrateOutbox({ database: sick.connectionString });
    await sick.run(`INSERT INTO outbox_migrations (version, name) VALUES (99, 'future')`);
    await found(sick, 'schema-version', 'info', /version 99, newer than/);
    await sick.run('UPDATE outbox_migrations SET breaks_before = 99 WHERE version = 99');
    expect(await found(sick, 'schema-version', 'error', /version 99/)).toContain('npm install');
  });

  it('finds indexes that are missing, invalid or other ones', async () => {
    await using sick = await admit(cluster);
    await sick.run('DROP INDEX idx_outbox_events_status_scheduled');
    const create = await found(sick, 'indexes', 'error', /status_scheduled is missing/);
    await sick.run(create);
    expect(await sick.findings()).toEqual([]);

    await sick.run(
      `UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'idx_outbox_events_processed'::regclass`,
    );
    await sick.run(await found(sick, 'indexes', 'error', /processed is invalid/));
    expect(await sick.findings()).toEqual([]);

    await sick.run(`DROP INDEX idx_outbox_events_leased_until;
      CREATE INDEX idx_outbox_events_leased_until ON outbox_events (leased_until)`);
    await sick.run(await found(sick, 'indexes', 'warning', /leased_until is CREATE INDEX/));
    expect(await sick.findings()).toEqual([]);
  });

  it('finds constraints that are missing or not validated', async () => {
    await using sick = await admit(cluster);
    await sick.run('ALTER TABLE outbox_events DROP CONSTRAINT outbox_events_pkey');
    await sick.run(await found(sick, 'constraints', 'error', /outbox_events_pkey .* is missing/));
    expect(await sick.findings()).toEqual([]);

    await sick.run(`ALTER TABLE outbox_events DROP CONSTRAINT outbox_events_count_not_negative;
      ALTER TABLE outbox_events ADD CONSTRAINT outbox_events_count_not_negative CHECK (retry_count >= 0) NOT VALID`);
    await sick.run(await found(sick, 'constraints', 'warning', /is not validated/));
    expect(await sick.findings()).toEqual([]);
  });

  it('is content with every index and constraint that its own fixes have made', async () => {
    await using sick = await admit(cluster);
    for (const name of Object.keys(EXPECTED_INDEXES)) await sick.run(`DROP INDEX ${name}`);
    for (const [name, { table }] of Object.entries(EXPECTED_CONSTRAINTS))
      await sick.run(`ALTER TABLE ${table} DROP CONSTRAINT ${name}`);
    const findings = await sick.findings();
    expect(findings).toHaveLength(
      Object.keys(EXPECTED_INDEXES).length + Object.keys(EXPECTED_CONSTRAINTS).length,
    );
    for (const { fix } of findings) await sick.run(fix);
    expect(await sick.findings()).toEqual([]);
  });

  it('finds a constraint that is another one', async () => {
    await using sick = await admit(cluster);
    await sick.run(`ALTER TABLE outbox_events DROP CONSTRAINT outbox_events_status_known,
      ADD CONSTRAINT outbox_events_status_known CHECK (status <> '')`);
    await sick.run(
      await found(sick, 'constraints', 'warning', /status_known .* is CHECK .*, and not/),
    );
    expect(await sick.findings()).toEqual([]);
  });

  it('finds functions that are missing or changed', async () => {
    await using sick = await admit(cluster);
    await sick.run('DROP FUNCTION outbox_prune');
    await found(sick, 'functions', 'error', /outbox_prune\(.* is missing/);
    await sick.run(await outboxSql());
    expect(await sick.findings()).toEqual([]);

    await sick.query(`CREATE OR REPLACE FUNCTION outbox_settle(settlements jsonb) RETURNS uuid[]
      LANGUAGE plpgsql SET search_path = '' AS $$ BEGIN RETURN '{}'; END $$`);
    await found(sick, 'functions', 'error', /outbox_settle\(.*not the one of the migrations/);
    await sick.run(await outboxSql());
    expect(await sick.findings()).toEqual([]);
  });

  it('finds what PUBLIC may do with tables, column by column', async () => {
    await using sick = await admit(cluster);
    await sick.run('GRANT SELECT (payload) ON outbox_events TO PUBLIC');
    await sick.run(
      await found(
        sick,
        'table-grants',
        'warning',
        /PUBLIC may SELECT in .*only row level security/,
      ),
    );
    expect(await sick.findings()).toEqual([]);
    await sick.run('GRANT TRUNCATE ON outbox_inbox TO PUBLIC');
    await sick.run(
      await found(sick, 'table-grants', 'error', /PUBLIC may TRUNCATE .*nothing stops/),
    );
    expect(await sick.findings()).toEqual([]);
  });

  it('finds functions that PUBLIC may call', async () => {
    await using sick = await admit(cluster);
    await sick.run('GRANT EXECUTE ON FUNCTION outbox_stats() TO PUBLIC');
    await sick.run(
      await found(sick, 'function-grants', 'error', /PUBLIC may call public.outbox_stats/),
    );
    expect(await sick.findings()).toEqual([]);
  });

  it('finds row level security that is off, or opened by a policy', async () => {
    await using sick = await admit(cluster);
    await sick.run('ALTER TABLE outbox_events DISABLE ROW LEVEL SECURITY');
    await sick.run(
      await found(sick, 'row-level-security', 'warning', /is off for .*outbox_events/),
    );
    expect(await sick.findings()).toEqual([]);
    await sick.run('CREATE POLICY "every ""body" ON outbox_inbox USING (true)');
    await sick.run(
      await found(sick, 'row-level-security', 'warning', /"every ""body" opens .* to PUBLIC/),
    );
    expect(await sick.findings()).toEqual([]);
  });

  it('finds the rights that the role of the connection lacks, and rows hidden from it', async () => {
    await using sick = await admit(cluster);
    await sick.run(`CREATE ROLE app LOGIN;
      GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO app;
      GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO app;
      REVOKE EXECUTE ON FUNCTION outbox_settle(jsonb) FROM app`);
    const url = new URL(sick.connectionString);
    url.username = 'app';
    const pool = new pg.Pool({ connectionString: url.href });
    try {
      const examineAsApp = () =>
        sick.findings({
          store: new PostgresOutboxStore(pool, sick.names),
          database: new PatientDatabase(pool, pool.options),
        });
      // What is hidden from it are the migrations too: it cannot even know the version.
      await sick.run(`CREATE POLICY app_reads ON outbox_migrations TO app USING (true)`);
      const findings = await examineAsApp();
      expect([...new Set(findings.map(({ check }) => check))]).toEqual(['own-rights']);
      const told = findings.map(({ what }) => what).join('\n');
      expect(told).toMatch(/role app may not DELETE in .*outbox_events/);
      expect(told).toMatch(
        /row level security hides every row of .*outbox_events.* from the role app/,
      );
      expect(told).toMatch(
        /role app may not call 1 function of the outbox, e.g. public.outbox_settle/,
      );
      broken.add('own-rights');
      for (const { fix } of findings) await sick.run(fix);
      expect(await examineAsApp()).toEqual([]);
    } finally {
      await pool.end();
      await sick.run('DROP OWNED BY app; DROP ROLE app');
    }
  });

  it('finds nothing missing for a role that was given what the README gives', async () => {
    await using sick = await admit(cluster);
    const [, grants = ''] =
      /^```sql\n(GRANT SELECT.*?)^```/ms.exec(readFileSync('README.md', 'utf8')) ?? [];
    await sick.run(`CREATE ROLE app LOGIN; ${grants}`);
    const url = new URL(sick.connectionString);
    url.username = 'app';
    const pool = new pg.Pool({ connectionString: url.href });
    try {
      const { findings, checks } = await sick.examine({
        store: new PostgresOutboxStore(pool, sick.names),
        database: new PatientDatabase(pool, pool.options),
      });
      expect(findings).toEqual([]);
      expect(checks.find(({ check }) => check === 'long-transactions')).toMatchObject({
        ran: true,
        remark: expect.stringMatching(/only the sessions of its own role/),
      });
    } finally {
      await pool.end();
      await sick.run('DROP OWNED BY app; DROP ROLE app');
    }
  });

  it('finds a schema of pg-boss that PUBLIC can reach', async () => {
    await using sick = await admit(cluster);
    await sick.run('CREATE SCHEMA pgboss; GRANT USAGE ON SCHEMA pgboss TO PUBLIC');
    await sick.run(await found(sick, 'pgboss-access', 'error', /PUBLIC has USAGE/));
    expect(await sick.findings()).toEqual([]);
  });

  it.each([
    ['durability', 'error', 'fsync'],
    ['durability', 'error', 'full_page_writes'],
    ['autovacuum', 'error', 'autovacuum'],
    ['autovacuum', 'error', 'track_counts'],
  ] as const)(
    '%s: finds with level %s that the server has %s off',
    async (check, level, setting) => {
      await using sick = await admit(cluster);
      try {
        await sick.run(`ALTER SYSTEM SET ${setting} = off; SELECT pg_reload_conf()`);
        await settled(sick, setting, 'off');
        const fix = await found(sick, check, level, new RegExp(`^${setting} is off`));
        await sick.run(fix);
        await settled(sick, setting, 'on');
        expect(await sick.findings()).toEqual([]);
      } finally {
        await asAdmin(cluster, `ALTER SYSTEM RESET ${setting}; SELECT pg_reload_conf()`);
      }
    },
  );

  it.each([
    ['durability', 'warning', 'synchronous_commit', 'off', /synchronous_commit is off/],
    ['isolation', 'warning', 'default_transaction_isolation', 'serializable', /is serializable/],
    ['read-only', 'error', 'default_transaction_read_only', 'on', /read_only is on/],
    ['timeouts', 'warning', 'statement_timeout', '2s', /statement_timeout is 2000 ms/],
    ['timeouts', 'warning', 'lock_timeout', '200ms', /lock_timeout is 200 ms/],
  ] as const)('%s: finds with level %s that the database has %s = %s', async (...given) => {
    const [check, level, setting, value, what] = given;
    await using sick = await admit(cluster);
    const [{ name }] = (await sick.query<{ name: string }>(
      'SELECT current_database() AS name',
    )) as [{ name: string }];
    await sick.run(`ALTER DATABASE ${name} SET ${setting} = '${value}'`);
    await sick.reconnect();
    const fix = await found(sick, check, level, what);
    expect(fix).toContain(`ALTER DATABASE ${name} RESET ${setting};`);
    await sick.run(fix);
    await sick.reconnect();
    expect(await sick.findings()).toEqual([]);
  });

  it('finds autovacuum switched off for the table', async () => {
    await using sick = await admit(cluster);
    await sick.run('ALTER TABLE outbox_events SET (autovacuum_enabled = off)');
    await sick.run(await found(sick, 'autovacuum', 'error', /off for .*outbox_events/));
    expect(await sick.findings()).toEqual([]);
  });

  it('finds connections nearly used up', async () => {
    await using sick = await admit(cluster);
    const others = Array.from(
      { length: 15 },
      () => new pg.Client({ connectionString: sick.connectionString }),
    );
    try {
      await Promise.all(others.map((client) => client.connect()));
      await found(sick, 'connections', 'warning', /\d+ of 17 connections are in use/);
    } finally {
      await Promise.all(others.map((client) => client.end()));
    }
  });

  it.each([60_000, -60_000])('finds a clock that is %i ms off', async (offMs) => {
    await using sick = await admit(cluster);
    shiftDate(Date.now() + offMs);
    await found(
      sick,
      'clock',
      'warning',
      offMs > 0 ? /(59|60).\d s ahead of/ : /(59|60).\d s behind/,
    );
    jest.useRealTimers();
    expect(await sick.findings()).toEqual([]);
  });

  it('finds a standby', async () => {
    await using sick = await admit(cluster);
    await sick.reconnect();
    const signal = path.join(cluster.dataDir, 'standby.signal');
    await cluster.stop();
    try {
      writeFileSync(signal, '', { mode: 0o644 });
      await cluster.start();
      await found(sick, 'read-only', 'error', /leads to a standby/);
    } finally {
      await cluster.stop();
      rmSync(signal, { force: true });
      await cluster.start();
    }
    expect(await sick.findings()).toEqual([]);
  });

  it('finds a transaction that is open for long, and ends it', async () => {
    await using sick = await admit(cluster);
    const client = new pg.Client({
      connectionString: sick.connectionString,
      application_name: 'forgotten',
    });
    client.on('error', () => {});
    await client.connect();
    try {
      await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
      await client.query('SELECT count(*) FROM outbox_events');
      expect(await sick.findings()).toEqual([]);
      const fix = await found(
        sick,
        'long-transactions',
        'warning',
        /\(forgotten, idle in transaction\) has a transaction open for 0 s, its snapshot \d+ transactions/,
        { longTransactionMs: 1 },
      );
      await sick.run(fix);
      await until(async () => (await sick.findings({ longTransactionMs: 1 })).length === 0, {
        what: 'the session is gone',
      });
    } finally {
      await client.end().catch(() => {});
    }
  });

  it('finds a prepared transaction, and ends it', async () => {
    await using sick = await admit(cluster);
    await sick.run(`BEGIN; CREATE TABLE of_it (); PREPARE TRANSACTION 'it''s mine'`);
    const fix = await found(sick, 'prepared-transactions', 'warning', /it's mine/, {
      longTransactionMs: 1,
    });
    await sick.run(fix);
    expect(await sick.findings({ longTransactionMs: 1 })).toEqual([]);
  });

  it.each([
    ['without any right', ''],
    ['whom row level security hides the version from', 'GRANT SELECT ON outbox_migrations TO app;'],
  ])('tells a role %s what it lacks, and does not send it off to migrate', async (_, grants) => {
    await using sick = await admit(cluster);
    await sick.run(`CREATE ROLE app LOGIN; ${grants}`);
    const url = new URL(sick.connectionString);
    url.username = 'app';
    const pool = new pg.Pool({ connectionString: url.href });
    try {
      const findings = await sick.findings({
        store: new PostgresOutboxStore(pool, sick.names),
        database: new PatientDatabase(pool, pool.options),
      });
      expect(new Set(findings.map(({ check }) => check))).toEqual(new Set(['own-rights']));
      expect(findings.map(({ what }) => what).join()).toMatch(/role app may not .*outbox_events/);
      expect(findings.map(({ fix }) => fix).join()).not.toContain('migrate');
    } finally {
      await pool.end();
      await sick.run('DROP OWNED BY app; DROP ROLE app');
    }
  });

  it('finds relays that have been alive for a while, where there is no pg-boss to tick', async () => {
    await using sick = await admit(cluster);
    await sick.store.activity.report(report());
    expect(await sick.findings()).toEqual([]);
    await sick.query(`UPDATE outbox_relays SET started_at = now() - interval '2 min'`);
    await found(sick, 'ticks', 'warning', /no pg-boss in the schema pgboss, although 1 relay /);
  });

  it('finds a replication slot that nobody reads, and drops it', async () => {
    await using sick = await admit(cluster);
    await sick.query(`SELECT pg_create_physical_replication_slot('lost', true)`);
    await sick.run(await found(sick, 'replication-slots', 'warning', /nobody reads .* lost/));
    expect(await sick.findings()).toEqual([]);
  });

  it('finds dead row versions, and vacuums', async () => {
    await using sick = await admit(cluster);
    await sick.query(
      `${EVENT}, status, processed_at) SELECT 'a.b', '{}', 'COMPLETED', now() FROM generate_series(1, 15000)`,
    );
    await sick.query('UPDATE outbox_events SET retry_count = 1');
    await sick.reconnect(); // a session that ends tells its statistics
    await until(async () => (await sick.findings()).length > 0, { what: 'the statistics know it' });
    await sick.run(await found(sick, 'dead-tuples', 'warning', /has 15000 dead row versions/));
    await sick.reconnect();
    await until(async () => (await sick.findings()).length === 0, { what: 'they are gone' });
  });

  it('finds a schedule that is missing, ticks that do not come, and ticks that fail', async () => {
    await using sick = await admit(cluster);
    const { boss, close } = await openBoss({ connectionString: sick.connectionString }, () => {});
    try {
      const ticks = new PgBossTicks(boss, 'process-outbox', async () => {}, new RecordingLogger());
      await ticks.start();
      await ticks.stop();
    } finally {
      await close();
    }
    await sick.store.activity.report(report());
    const { findings, checks } = await sick.examine();
    expect(findings).toEqual([]);
    expect(checks.filter(({ ran }) => !ran)).toEqual([]);

    await sick.query('CREATE TABLE kept AS SELECT * FROM pgboss.schedule');
    await sick.query('DELETE FROM pgboss.schedule');
    await found(sick, 'ticks', 'error', /no schedule for the queue process-outbox/);
    await sick.query('INSERT INTO pgboss.schedule SELECT * FROM kept');

    await sick.query(`INSERT INTO pgboss.job (name, state, created_on, started_on, completed_on)
      SELECT 'process-outbox', 'failed', now(), now(), now() FROM generate_series(1, 12)`);
    await found(sick, 'ticks', 'warning', /12 ticks of process-outbox have failed/);
    await sick.query(`DELETE FROM pgboss.job WHERE state = 'failed'`);

    await sick.query(
      `UPDATE pgboss.job SET created_on = now() - interval '10 min', started_on = NULL`,
    );
    await found(sick, 'ticks', 'error', /the last tick of process-outbox was 60\d s ago/);
    await sick.query('DELETE FROM pgboss.job');
    await sick.query(`INSERT INTO pgboss.job (name, state, start_after)
      VALUES ('process-outbox', 'created', now() - interval '10 min')`);
    await found(sick, 'ticks', 'error', /has been waiting to be fetched for 60\d s/);
    await sick.query('DELETE FROM pgboss.job');
    await found(sick, 'ticks', 'error', /no tick at all/);
    // Where nobody relays, nobody ticks.
    await sick.query(`UPDATE outbox_relays SET seen_at = now() - interval '1 hour'`);
    expect(await sick.findings()).toEqual([]);
  });

  it('finds that no relay is alive while events are due, and what is overdue', async () => {
    await using sick = await admit(cluster);
    await sick.query(`${EVENT}, scheduled_at) VALUES ('a.b', '{}', now() - interval '2 min')`);
    await found(sick, 'relays', 'error', /no relay is alive, with 1 event due/);
    await sick.store.activity.report(report());
    expect(await sick.findings()).toEqual([]);
    await sick.query(`UPDATE outbox_events SET scheduled_at = now() - interval '10 min'`);
    await found(sick, 'overdue', 'error', /1 event due, the oldest for 10 minutes/);
  });

  it('finds relays of different versions', async () => {
    await using sick = await admit(cluster);
    await sick.store.activity.report(report());
    await sick.store.activity.report(report({ name: 'host:2' }));
    expect(await sick.findings()).toEqual([]);
    await sick.store.activity.report(report({ version: '0.0.9', name: 'old:7' }));
    await found(sick, 'relay-versions', 'warning', /0\.0\.9 on old:7; 0\.1\.0 on host/);
  });

  it('finds listeners that share a name, in reports and in this process', async () => {
    await using sick = await admit(cluster);
    const twice = [
      { name: 'Notifier.on', event: 'a.b' },
      { name: 'Notifier.on', event: 'a.b' },
    ];
    await found(
      sick,
      'listener-names',
      'warning',
      /2 listeners of "a.b" share the name Notifier.on/,
      {
        listeners: twice,
      },
    );
    await sick.store.activity.report(report({ listeners: twice }));
    await found(
      sick,
      'listener-names',
      'warning',
      /2 listeners of "a.b" share the name Notifier.on/,
    );
  });

  it('finds event types that wait unheard, or that no relay listens to', async () => {
    await using sick = await admit(cluster);
    await sick.query(
      `${EVENT}, scheduled_at, unheard_since) VALUES ('lost.type', '{}', now() + interval '1 h', now())`,
    );
    await found(sick, 'unheard', 'warning', /1 event of the type "lost.type" waiting/);
    await sick.query('DELETE FROM outbox_events');
    await sick.query(`${EVENT}, scheduled_at) VALUES ('b.c', '{}', now() - interval '2 min')`);
    const relay = report();
    await sick.store.activity.report(relay);
    await found(sick, 'unheard', 'warning', /1 event of the type "b.c" waiting/);
    // Whatever its delimiter is, a wildcard may mean it.
    await sick.store.activity.report({
      ...relay,
      number: 2,
      listeners: [{ name: 'A.on', event: '**' }],
    });
    expect(await sick.findings()).toEqual([]);
  });

  it('finds dead letters by type', async () => {
    await using sick = await admit(cluster);
    await sick.query(
      `${EVENT}, status, processed_at) VALUES ('it''s; dead', '{}', 'FAILED', now())`,
    );
    expect(
      await found(sick, 'dead-letters', 'warning', /1 dead letter of the type "it's; dead"/),
    ).toBe(String.raw`npx nestjs-outbox-relay dead-letters list --type 'it'\''s; dead'`);
  });

  it('makes the command answer 0 for a clean database, and 3 for warnings if it is to be strict', async () => {
    await using sick = await admit(cluster);
    const codeOf = async (...args: string[]) =>
      (await cli(['doctor', ...args], sick.connectionString)).code;
    expect(await codeOf('--strict')).toBe(0);
    await sick.query(`${EVENT}, status, processed_at) VALUES ('a.b', '{}', 'FAILED', now())`);
    expect(await codeOf()).toBe(0);
    expect(await codeOf('--strict')).toBe(3);
    await sick.run('ALTER TABLE outbox_events SET (autovacuum_enabled = off)');
    expect(await codeOf()).toBe(3);
  });

  it('finds leases that ran out long ago, or never will', async () => {
    await using sick = await admit(cluster);
    await sick.query(`${EVENT}, status, lease_token, leased_until)
      VALUES ('a.b', '{}', 'PROCESSING', gen_random_uuid(), now() - interval '1 h')`);
    await found(sick, 'leases', 'error', /1 event held under leases that ran out/);
    await sick.query(`UPDATE outbox_events SET leased_until = 'infinity'`);
    await sick.run(await found(sick, 'leases', 'error', /do not run out within two days/));
    expect(await sick.findings()).toEqual([]);
  });

  it('finds events that are scheduled absurdly far ahead', async () => {
    await using sick = await admit(cluster);
    await sick.query(
      `${EVENT}, scheduled_at) VALUES ('a.b', '{}', 'infinity'), ('a.b', '{}', now() + interval '40 years')`,
    );
    await found(
      sick,
      'far-future',
      'warning',
      /2 events scheduled more than a year ahead, the latest for infinity/,
    );
  });

  it('finds that nobody prunes, by the retention of this process if that is known', async () => {
    await using sick = await admit(cluster);
    await sick.query(
      `${EVENT}, status, processed_at) VALUES ('a.b', '{}', 'COMPLETED', now() - interval '10 days')`,
    );
    expect(await sick.findings()).toEqual([]);
    await found(sick, 'retention', 'info', /is 10 days old/, { completedMs: 7 * 86_400_000 });
    await sick.query(`UPDATE outbox_events SET processed_at = now() - interval '31 days'`);
    await found(sick, 'retention', 'info', /is 31 days old/);
    expect(await sick.findings({ completedMs: false })).toEqual([]);
  });

  it('finds gates that are failing or closed', async () => {
    await using sick = await admit(cluster);
    await sick.query(`INSERT INTO outbox_sentinels (key, version, failures, last_error, failed_at)
      VALUES ('records:t-7', '2', 3, 'no such table', now())`);
    await found(
      sick,
      'gates',
      'warning',
      /records:t-7 \(version 2\) is failing after 3 failures: no such table/,
    );
    await sick.query(
      `UPDATE outbox_sentinels SET closed_at = now(), closed_until = now() + interval '1 h'`,
    );
    expect(await found(sick, 'gates', 'warning', /is closed after 3/)).toContain(
      'npx nestjs-outbox-relay gates reopen records:t-7 --version 2',
    );
  });

  it('does not wait for ever for a second connection of a pool that has one', async () => {
    await using sick = await admit(cluster);
    const pool = new pg.Pool({ connectionString: sick.connectionString, max: 1 });
    try {
      const { findings, checks } = await sick.examine({
        database: new PatientDatabase(pool, undefined),
      });
      expect(findings).toEqual([]);
      expect(checks.find(({ check }) => check === 'pooler')).toMatchObject({
        ran: false,
        remark: expect.stringMatching(/needs two connections/),
      });
      expect(pool.totalCount - pool.idleCount).toBe(0);
    } finally {
      await pool.end();
    }
  });

  describeWithPooler('behind a pooler in transaction mode', () => {
    it('finds it by its port, and without it', async () => {
      await using sick = await admit(cluster);
      await using pooler = await startPooler(sick.connectionString, {
        sessions: 3,
        port: 6543,
        host: `127.0.0.${major}`,
        scope: 'test',
      });
      const pool = new pg.Pool({ connectionString: pooler.connectionString });
      try {
        const database = (clientConfig: pg.ClientConfig | undefined) => ({
          store: new PostgresOutboxStore(pool, sick.names),
          database: new PatientDatabase(pool, clientConfig),
        });
        await found(sick, 'pooler', 'info', /port 6543/, database(pool.options));
        await found(sick, 'pooler', 'info', /several sessions/, database(undefined));
      } finally {
        await pool.end();
      }
    });
  });

  it('has seen every check complain', () => {
    expect([...broken].toSorted()).toEqual(CHECKS.map(({ name }) => name).toSorted());
  });
});
