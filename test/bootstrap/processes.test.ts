import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { migrateOutbox } from '../../src/index.js';
import type { BootstrapAppSettings } from '../apps/bootstrap-app.js';
import { startChild, type Child } from '../support/child.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { until } from '../support/until.js';

/** A machine that runs other tests as well may need ten times as long as one that does not. */
const PATIENTLY = { timeoutMs: 30_000 };

describe.each([14, 18] as const)('replicas on PostgreSQL %i', (major) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createDatabase(major);
    await migrateOutbox({ database: database.pool });
    await database.query(
      'CREATE TABLE loaded (app text); CREATE TABLE fanned_out (n int, app text)',
    );
  });
  beforeEach(async () => {
    await database.query('TRUNCATE outbox_sentinels, loaded, fanned_out');
  });
  afterAll(async () => {
    // A killed process leaves its sessions to the server for a moment.
    await database.terminateBackends();
    await database.drop();
  });

  async function start(name: string, more: Partial<BootstrapAppSettings> = {}): Promise<Child> {
    const settings = { database: database.connectionString, name, ...more };
    const child = startChild('bootstrap-app', {
      env: { BOOTSTRAP_APP: JSON.stringify(settings), NO_COLOR: '1' },
    });
    await child.message('ready', PATIENTLY);
    return child;
  }

  async function run(child: Child): Promise<unknown> {
    child.send('run');
    return (await child.message('result', PATIENTLY))['outcome'];
  }

  const count = async (table: string): Promise<number> =>
    (await database.query<{ n: number }>(`SELECT count(*)::int AS n FROM ${table}`))[0]!.n;
  const stamped = async (): Promise<boolean> =>
    (await database.query('SELECT FROM outbox_sentinels WHERE stamped_at IS NOT NULL')).length > 0;

  it('that start together do it once', async () => {
    const replicas = await Promise.all(['a', 'b', 'c'].map((name) => start(name)));
    const outcomes = await Promise.all(replicas.map(run));
    expect(outcomes.filter((outcome) => outcome === 'stamped')).toHaveLength(1);
    for (const outcome of outcomes)
      expect(['stamped', 'already-stamped', 'running-elsewhere']).toContain(outcome);
    expect([await count('loaded'), await count('fanned_out')]).toEqual([1, 3]);
    expect(await Promise.all(replicas.map(run))).toEqual(
      Array.from({ length: 3 }, () => 'already-stamped'),
    );
    await Promise.all(replicas.map((child) => child.kill()));
  });

  it.each<[string, Partial<BootstrapAppSettings>, string, number]>([
    ['between the fan-out and the stamp', { hold: 'stamping' }, 'stamping', 3],
    ['during the fan-out', { hold: { chunk: 2 } }, 'holding', 2],
  ])('killed %s leave no stamp, and the next call repeats all of it', async (...drill) => {
    const [, hold, point, fannedOut] = drill;
    const first = await start('first', hold);
    const second = await start('second');
    first.send('run');
    await first.message(point, PATIENTLY);
    expect(await run(second)).toBe('running-elsewhere');
    await first.kill('SIGKILL');
    expect(await stamped()).toBe(false);
    expect(await count('fanned_out')).toBe(fannedOut);

    await until(async () => (await run(second)) === 'stamped', {
      what: 'the lease of the dead one is over',
      everyMs: 100,
      ...PATIENTLY,
    });
    expect(await stamped()).toBe(true);
    expect([await count('loaded'), await count('fanned_out')]).toEqual([2, fannedOut + 3]);
    expect(second.stdout + second.stderr).toContain('the process that was at it died');
    await second.kill();
  });

  it.each([false, true])(
    'an unhandled rejection that a listener left behind is traced to its event and listener (application listens itself: %p)',
    async (listensToRejections) => {
      const child = await start('stray', { stray: true, listensToRejections });
      child.send('run');
      const line = await child.line(/did not await work/, PATIENTLY);
      expect(line).toMatch(
        /record\.bulk\.upserted [0-9a-f-]{36}: FanOut\.note did not await work that it started, and that has failed/,
      );
      expect(line).toContain('the queue was down after all');
      if (listensToRejections) {
        await child.message('rejection', PATIENTLY);
        await child.kill();
      } else {
        // What an unhandled rejection does to a process stays as it was: it ends.
        expect(await child.exited).toEqual({ code: 1, signal: null });
      }
    },
  );
});
