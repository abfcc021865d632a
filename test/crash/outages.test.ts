import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { migrateOutbox } from '../../src/index.js';
import { startCluster, type Cluster } from '../../tools/postgres-cluster.js';
import type { RelayAppSettings, Work } from '../apps/relay-app.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { until } from '../support/until.js';
import { createLedger, PATIENTLY, startRelayApp, type RelayApp } from './rig.js';

jest.setTimeout(120_000);

const OUTAGE_MS = 20_000;

/**
 * One PostgreSQL that is ill-treated, and processes that live through all of it: two relays (one with everything of
 * its own, one on the application's pool and pg-boss) and one that only enqueues. The ledger is elsewhere.
 */
describe('processes whose PostgreSQL goes away', () => {
  let cluster: Cluster;
  let ledger: TestDatabase;
  let own: RelayApp;
  let lent: RelayApp;
  let producer: RelayApp;
  let leaving: RelayApp;
  let late: RelayApp | undefined;
  let asked = 0;
  let stored = 0;

  const settings = (name: string): RelayAppSettings => ({
    name,
    database: cluster.connectionString(),
    ledger: ledger.connectionString,
  });

  beforeAll(async () => {
    [cluster, ledger] = await Promise.all([
      startCluster({ major: 18, durable: true }),
      createDatabase(),
    ]);
    await createLedger(ledger);
    await migrateOutbox({ database: cluster.connectionString() });
    await query('CREATE DATABASE elsewhere');
    [own, lent, producer, leaving] = await Promise.all([
      startRelayApp({ ...settings('own'), boss: 'own', pool: 'own' }),
      startRelayApp({ ...settings('lent'), boss: 'app', pool: 'app' }),
      startRelayApp({ ...settings('producer'), relay: false }),
      // In a database of its own: what it had in hand when it left would have to wait for its lease.
      startRelayApp({
        ...settings('leaving'),
        database: cluster.connectionString('elsewhere'),
        migrate: true,
        boss: 'own',
        pool: 'own',
      }),
    ]);
  }, 60_000);

  afterAll(async () => {
    for (const app of [own, lent, producer, leaving, late]) await app?.child.kill();
    await ledger.terminateBackends();
    await ledger.drop();
    await cluster.remove();
  });

  it('all backends are terminated while they poll: they go on, and nothing is lost', async () => {
    const logged = countLines();
    for (let time = 0; time < 3; time++) {
      const [row] = await query<{ cut: number }>(
        `SELECT count(pg_terminate_backend(pid))::int AS cut FROM pg_stat_activity
         WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'`,
      );
      if (time === 0) expect(row?.cut).toBeGreaterThan(0);
      await enqueue();
    }
    expect(stored).toBeGreaterThan(0);
    await untilDelivered();
    expect(logged()).toBeLessThan(20);
  });

  it('an immediate restart while they poll and deliver: they go on, and nothing is lost', async () => {
    const logged = countLines();
    const n = await enqueue({ act: 'sleep', ms: 1_000 });
    await until(async () => (await callsOf(n)) === 1, {
      what: 'it is being delivered',
      ...PATIENTLY,
    });
    await cluster.restart('immediate');
    await enqueue();
    await untilDelivered();
    expect(await callsOf(n)).toBe(1);
    expect(logged()).toBeLessThan(30);
  });

  it('an outage of 20 seconds: they stay up, say little, and go on by themselves; who starts meanwhile waits', async () => {
    const logged = countLines();
    const during = await enqueue({ act: 'sleep', ms: 1_000 });
    await enqueue({}, { delayMs: 5_000 });
    await until(async () => (await callsOf(during)) === 1, {
      what: 'it is being delivered',
      ...PATIENTLY,
    });
    await cluster.stop('immediate');
    const over = sleep(OUTAGE_MS);

    // Last resort: in memory, in this process, marked as such.
    producer.tell({ do: 'enqueue', work: [{ n: 1_000 }] });
    expect(await producer.child.message('enqueued')).toMatchObject({ stored: [false] });
    expect(producer.child.messages).toContainEqual(
      expect.objectContaining({ type: 'emitted', n: 1_000 }),
    );
    await producer.child.line(/ERROR \[Outbox\] could not store work .*emitting it in memory/);

    const told = performance.now();
    expect(await leaving.child.kill('SIGTERM')).toEqual({ code: null, signal: 'SIGTERM' });
    expect(performance.now() - told).toBeLessThan(15_000);

    late = await startRelayApp({ ...settings('late'), boss: 'own', pool: 'own' });
    await late.child.line(/ERROR \[Outbox\] cannot reach the outbox at start, will keep trying/);
    await over;
    await cluster.start();

    // Due in the outage, stored before it: nobody wakes anybody for it.
    await untilDelivered();
    // Delivered in the outage; the outcome was kept and written down afterwards.
    expect(await callsOf(during)).toBe(1);
    const storedBefore = stored;
    await enqueue();
    expect(stored).toBe(storedBefore + 1);
    await untilDelivered();
    expect(await callsOf(1_000)).toBe(0);
    // Per process: that it cannot be reached, by the relay and by pg-boss, and that it can again.
    expect(logged()).toBeLessThan(40);
    expect(linesOf(late)).toBeLessThan(20);
  }, 90_000);

  /** Answers its number. One whose connection is cut that very moment is emitted in memory, and not stored. */
  async function enqueue(
    work: Omit<Work, 'n'> = {},
    { delayMs }: { delayMs?: number } = {},
  ): Promise<number> {
    const n = ++asked;
    producer.tell({
      do: 'enqueue',
      work: [{ n, ...work }],
      ...(delayMs !== undefined && { delayMs }),
    });
    const enqueued = await producer.child.message('enqueued');
    stored += (enqueued['stored'] as boolean[]).filter((isStored) => isStored).length;
    return n;
  }

  /** Everything that was stored is done, and the processes are still those that were started. */
  async function untilDelivered(): Promise<void> {
    await until(
      async () => {
        const rows = await query<{ status: string; total: number }>(
          'SELECT status, count(*)::int AS total FROM outbox_events GROUP BY status',
        );
        return rows.length === 1 && rows[0]?.status === 'COMPLETED' && rows[0].total === stored;
      },
      { what: `all ${stored} are COMPLETED`, timeoutMs: 40_000, everyMs: 50 },
    ).catch((error: unknown) => {
      const output = [own, lent, producer].map(({ child }) => `${child.stdout}\n${child.stderr}`);
      throw new Error(`${String(error)}\n${output.join('\n---\n')}`);
    });
    for (const { child } of [own, lent, producer])
      expect(await Promise.race([child.exited, Promise.resolve('runs')])).toBe('runs');
  }

  async function callsOf(n: number): Promise<number> {
    const rows = await ledger.query(`SELECT 1 FROM ledger WHERE n = $1 AND point = 'started'`, [n]);
    return rows.length;
  }

  /** Lines that the outbox has logged from now on, in all processes. */
  function countLines(): () => number {
    const count = (): number =>
      [own, lent, producer].map(linesOf).reduce((total, lines) => total + lines);
    const before = count();
    return () => count() - before;
  }

  async function query<Row extends pg.QueryResultRow>(text: string): Promise<Row[]> {
    const client = new pg.Client({ connectionString: cluster.connectionString() });
    client.on('error', () => {});
    await client.connect();
    try {
      return (await client.query<Row>(text)).rows;
    } finally {
      await client.end();
    }
  }
});

function linesOf({ child }: RelayApp): number {
  return `${child.stdout}\n${child.stderr}`.split('\n').filter((line) => line.includes('[Outbox]'))
    .length;
}
