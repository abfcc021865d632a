import { describe, expect, it, jest } from '@jest/globals';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { SCHEMA_VERSION } from '../../src/store/postgres/schema-version.js';
import { PATIENTLY, Rig } from '../crash/rig.js';
import { makeNextVersion } from './next-version.js';

jest.setTimeout(120_000);

const TOTAL = 400;
const NEXT = SCHEMA_VERSION + 1;

describe('a rolling deploy', () => {
  it('moves a busy outbox to the next version: old and new side by side, nothing lost, nothing twice', async () => {
    using next = makeNextVersion('next');
    await using rig = await Rig.open();
    const load = async (from: number): Promise<void> => {
      await rig.store(
        Array.from({ length: TOTAL }, (_, n) => ({ n: from + n, act: 'sleep' as const, ms: 5 })),
      );
    };
    const relay = { quiet: true, relay: { batchSize: 20, concurrency: 4 } };

    // Old processes are at work when the schema is migrated, by the new version's command line.
    const old = await rig.start({ name: 'old', ...relay });
    await load(0);
    const working = old.tick();
    await promisify(execFile)(process.execPath, [
      next.cli,
      'migrate',
      '--connection',
      rig.database.connectionString,
    ]);
    expect(await versionOf(rig)).toBe(NEXT);
    await working;

    // The first new one joins; the old one goes on beside it.
    const fresh = await rig.start({ name: 'new', ...relay }, next.apps);
    await load(TOTAL);
    await Promise.all([old.tick(), fresh.tick()]);
    await rig.untilEvery('COMPLETED');

    // An old process dies in the middle of the deploy and is started again, old as it is.
    await load(2 * TOTAL);
    await old.child.kill('SIGTERM');
    const again = await rig.start({ name: 'old again', ...relay });
    await Promise.all([again.tick(), fresh.tick()]);
    await rig.untilEvery('COMPLETED');

    const calls = await rig.calls();
    expect(calls.size).toBe(3 * TOTAL);
    expect([...calls.values()].filter((times) => times !== 1)).toEqual([]);
    const shares = new Set((await rig.ledger()).map(({ app }) => app));
    expect(shares).toEqual(new Set(['old', 'new', 'old again']));
    const versions = await rig.database.query<{ version: string }>(
      'SELECT DISTINCT version FROM outbox_relays ORDER BY 1',
    );
    expect(versions.map(({ version }) => version)).toContain('99.0.0');
    expect(versions).toHaveLength(2);
  });

  it('refuses to start old processes on a schema that says that they cannot use it', async () => {
    using next = makeNextVersion('breaking', { breaksBefore: NEXT });
    await using rig = await Rig.open();
    await promisify(execFile)(process.execPath, [
      next.cli,
      'migrate',
      '--connection',
      rig.database.connectionString,
    ]);
    const old = rig.launch({ name: 'old' });
    expect((await old.child.exited).code).not.toBe(0);
    expect(old.child.stderr + old.child.stdout).toContain(
      `the database is at outbox version ${NEXT} ("public"."outbox_events"), which code written for version ` +
        `${SCHEMA_VERSION} cannot use any more: upgrade nestjs-outbox-relay`,
    );
    const fresh = await rig.start({ name: 'new' }, next.apps);
    await rig.store([{ n: 1 }]);
    await fresh.tick();
    await rig.untilEvery('COMPLETED');
  });

  it('refuses to start new processes before the schema is migrated, and says what to run', async () => {
    using next = makeNextVersion('early');
    await using rig = await Rig.open();
    const early = rig.launch({ name: 'new' }, next.apps);
    await early.child.line(/run "npx nestjs-outbox-relay migrate"/, PATIENTLY);
    expect((await early.child.exited).code).not.toBe(0);
  });
});

async function versionOf(rig: Rig): Promise<number> {
  const [row] = await rig.database.query<{ version: number }>(
    'SELECT max(version) AS version FROM outbox_migrations',
  );
  return row?.version ?? 0;
}
