import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { PgBoss } from 'pg-boss';
import { PATIENTLY, Rig, type RelayApp } from '../crash/rig.js';
import type { TestDatabase } from '../support/database.js';
import { until } from '../support/until.js';

jest.setTimeout(150_000);

const QUEUE = 'process-outbox';
const TICK_MS = 15_000;
const TOLERANCE_MS = 2_500;

describe('ticks on pg-boss', () => {
  // They tick by themselves while the other tests run; the last tests look at what came of it.
  const running = new Map<'own' | 'app' | 'broken', Rig>();

  beforeAll(async () => {
    for (const boss of ['own', 'app'] as const) {
      const rig = await Rig.open();
      running.set(boss, rig);
      await rig.start({ name: 'first', boss, pool: 'own' });
      await rig.start({ name: 'second', boss, pool: 'own' });
    }
    const broken = await Rig.open();
    running.set('broken', broken);
    await broken.start({ boss: 'own', pool: 'own' });
    await untilTicks(broken.database, 1);
    expect(await deleteWaiting(broken.database)).toBe(1);
  });

  afterAll(async () => {
    for (const rig of running.values()) await rig[Symbol.asyncDispose]();
  });

  it('are one chain: whoever sends one too many, as a cron does once a minute, starts it again or changes nothing', async () => {
    await using rig = await Rig.open();
    await rig.start({ boss: 'own', pool: 'own' });
    await untilTicks(rig.database, 1);
    expect(await deleteWaiting(rig.database)).toBe(1);
    expect(await schedules(rig.database)).toEqual([
      { name: QUEUE, key: '', cron: '* * * * *', timezone: 'UTC' },
    ]);

    expect(await sendAsTheCronDoes(rig.database)).not.toBeNull();
    await untilTicks(rig.database, 2);
    const next = (await jobs(rig.database)).filter(({ state }) => state === 'created');
    expect(next).toHaveLength(1);
    const inMs = (next[0]?.start_after.getTime() ?? 0) - Date.now();
    expect(inMs).toBeGreaterThan(TICK_MS - 5_000);
    expect(inMs).toBeLessThanOrEqual(TICK_MS);
    // While one waits, the cron's is one too many.
    expect(await sendAsTheCronDoes(rig.database)).toBeNull();
  });

  it('of three processes started together on an empty database, and started again, are one queue with one schedule, without a complaint', async () => {
    await using rig = await Rig.open({ empty: true });
    for (const round of ['first', 'second']) {
      const apps = await Promise.all(
        ['a', 'b', 'c'].map((name) =>
          rig.start({ name: `${round} ${name}`, boss: 'own', pool: 'own', migrate: true }),
        ),
      );
      // In the second round the schedule is there again, though somebody has dropped its row.
      await until(
        async () =>
          (await rig.database.query('SELECT 1 FROM pgboss.instance')).length >= 3 &&
          (await schedules(rig.database)).length === 1,
        { what: 'three instances are up', ...PATIENTLY },
      );
      await untilTicks(rig.database, 1);
      // A process that ends has finished its start before: what it had to say is there.
      for (const { child } of apps)
        expect(await child.kill('SIGTERM')).toEqual({ code: null, signal: 'SIGTERM' });
      expect(apps.flatMap(complaints)).toEqual([]);
      expect(
        await rig.database.query(`SELECT name FROM pgboss.queue WHERE name LIKE '%outbox%'`),
      ).toEqual([{ name: QUEUE }]);
      expect(await schedules(rig.database)).toEqual([
        { name: QUEUE, key: '', cron: '* * * * *', timezone: 'UTC' },
      ]);
      await rig.database.query('DELETE FROM pgboss.schedule');
    }
  });

  it('of two outboxes in one database have queues of their own', async () => {
    await using rig = await Rig.open();
    await rig.start({ boss: 'own', pool: 'own' });
    await rig.start({ boss: 'own', pool: 'own', table: 'billing_outbox_events', migrate: true });
    await untilTicks(rig.database, 1);
    await untilTicks(rig.database, 1, `${QUEUE}/public.billing_outbox_events`);
    expect((await schedules(rig.database)).map(({ name }) => name)).toEqual([
      QUEUE,
      `${QUEUE}/public.billing_outbox_events`,
    ]);
  });

  it("run on the application's pool where that is all there is, and one that goes wrong inside does not fail its job", async () => {
    await using rig = await Rig.open();
    const app = await rig.start({ boss: 'own', pool: 'app' });
    await untilTicks(rig.database, 1);
    await rig.database.query('ALTER TABLE outbox_events RENAME TO elsewhere');
    await tickNow(rig.database);
    await untilTicks(rig.database, 2);
    await app.child.line(/store fails, events wait.*outbox_events/);
    await rig.database.query('ALTER TABLE elsewhere RENAME TO outbox_events');

    await rig.store([{ n: 1 }]);
    await tickNow(rig.database);
    await rig.untilEvery('COMPLETED');
    expect((await jobs(rig.database)).filter(({ state }) => state === 'failed')).toEqual([]);
  });

  it.each([
    { boss: 'own', whose: "on the outbox's own instance" },
    { boss: 'app', whose: "on one of the application's with default settings" },
  ] as const)('come every 15 seconds, once for two processes, $whose', async ({ boss }) => {
    const rig = running.get(boss);
    if (rig === undefined) throw new Error('it was not started');
    const ticks = await untilTicks(rig.database, 4, QUEUE, 4 * TICK_MS);
    const times = ticks.map(({ started_on }) => started_on?.getTime() ?? 0);
    const gaps = times.slice(1).map((time, index) => time - (times[index] ?? 0));
    for (const gap of gaps) expect(Math.abs(gap - TICK_MS)).toBeLessThan(TOLERANCE_MS);
    // Lateness does not add up.
    const drift = (times.at(-1) ?? 0) - (times[0] ?? 0) - gaps.length * TICK_MS;
    expect(Math.abs(drift)).toBeLessThan(TOLERANCE_MS);
  });

  it('start again by themselves, a minute or so after the one that waited was deleted', async () => {
    const database = running.get('broken')?.database;
    if (database === undefined) throw new Error('it was not started');
    await untilTicks(database, 3, QUEUE, 115_000);
  });
});

interface Job {
  readonly id: string;
  readonly state: string;
  readonly start_after: Date;
  readonly started_on: Date | null;
}

/** The ticks as pg-boss has them, oldest first. */
async function jobs(database: TestDatabase, queue = QUEUE): Promise<Job[]> {
  return database.query<Job>(
    `SELECT id, state::text, start_after, started_on FROM pgboss.job
     WHERE name = $1 ORDER BY created_on, start_after`,
    [queue],
  );
}

async function untilTicks(
  database: TestDatabase,
  count: number,
  queue = QUEUE,
  timeoutMs = 30_000,
): Promise<Job[]> {
  return until(
    async () => {
      const done = (await jobs(database, queue)).filter(({ state }) => state === 'completed');
      return done.length >= count ? done : undefined;
    },
    { what: `${count} tick(s) of ${queue} are completed`, timeoutMs, everyMs: 50 },
  );
}

async function schedules(database: TestDatabase): Promise<{ name: string }[]> {
  return database.query(`SELECT name, key, cron, timezone FROM pgboss.schedule ORDER BY name`);
}

/** Every minute, and not at once as here. */
async function sendAsTheCronDoes(database: TestDatabase): Promise<string | null> {
  const boss = new PgBoss({ connectionString: database.connectionString, schedule: false });
  boss.on('error', () => {});
  await boss.start();
  try {
    return await boss.send(QUEUE, null, {});
  } finally {
    await boss.stop({ graceful: false, close: true });
  }
}

/** Breaks the chain. Answers how many there were. */
async function deleteWaiting(database: TestDatabase): Promise<number> {
  const deleted = await database.query(
    `DELETE FROM pgboss.job WHERE name = $1 AND state = 'created' RETURNING id`,
    [QUEUE],
  );
  return deleted.length;
}

/** The tick that waits is due. */
async function tickNow(database: TestDatabase): Promise<void> {
  await database.query(
    `UPDATE pgboss.job SET start_after = now() WHERE name = $1 AND state = 'created'`,
    [QUEUE],
  );
}

function complaints({ child }: RelayApp): string[] {
  return `${child.stdout}\n${child.stderr}`
    .split('\n')
    .filter((line) => /ERROR|WARN|FATAL/.test(line));
}
