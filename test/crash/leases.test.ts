import { describe, expect, it, jest } from '@jest/globals';
import { until } from '../support/until.js';
import { PATIENTLY, Rig } from './rig.js';

jest.setTimeout(120_000);

const LEASE_MS = 1_000;

describe('a lease', () => {
  it('is kept for as long as its listener works, though a second relay looks for expired ones all the time', async () => {
    await using rig = await Rig.open();
    const [first, second] = await Promise.all([
      rig.start({ name: 'first', relay: { leaseMs: LEASE_MS } }),
      rig.start({ name: 'second', relay: { leaseMs: LEASE_MS } }),
    ]);
    await rig.store([{ n: 1, act: 'sleep', ms: 3 * LEASE_MS }]);
    await first.tick();
    await first.child.message('started');

    let reaped = 0;
    const finished = first.child.message('finished').then(() => true);
    while (!(await Promise.race([finished, second.reap().then((total) => void (reaped += total))])))
      await second.tick();
    expect(reaped).toBe(0);

    expect(await rig.untilEvery('COMPLETED')).toMatchObject([{ retry_count: 0 }]);
    expect(await rig.calls()).toEqual(new Map([[1, 1]]));
  });

  it('is lost by a process whose event loop stands still for longer: another takes over, and the late finisher changes nothing and says so', async () => {
    await using rig = await Rig.open();
    const [stalled, other] = await Promise.all([
      rig.start({ name: 'stalled', relay: { leaseMs: LEASE_MS } }),
      rig.start({ name: 'other', retry: { backoffMs: 0 }, hold: { listener: 0 } }),
    ]);
    await rig.store([{ n: 1, act: 'block', ms: 3 * LEASE_MS }]);
    stalled.tell({ do: 'tick' });
    await stalled.child.message('started');
    // What the other one is given is not as slow.
    await rig.database.query(`UPDATE outbox_events SET payload = payload - 'act'`);

    await until(async () => (await other.reap()) === 1, { what: 'the other has taken over' });
    await other.at('listener');
    const [held] = await rig.events();
    expect(held).toMatchObject({ status: 'PROCESSING', retry_count: 1 });

    await stalled.child.line(/the lease was lost to another process/);
    expect(await rig.events()).toEqual([held]);
    other.tell({ do: 'go', point: 'listener' });
    expect(await rig.untilEvery('COMPLETED')).toMatchObject([{ retry_count: 1 }]);
    const calls = (await rig.ledger()).filter(({ point }) => point === 'started');
    expect(calls.map(({ app, attempt }) => ({ app, attempt }))).toEqual([
      { app: 'stalled', attempt: 1 },
      { app: 'other', attempt: 2 },
    ]);
  });

  it.each([
    {
      late: 'success',
      work: {},
      otherWork: { act: 'fail' },
      // The other's failure, after the crash that the reaper has counted.
      end: { status: 'PENDING', retry_count: 2, last_error: 'Worker.work: told to fail (1)' },
    },
    {
      late: 'failure',
      work: { act: 'fail' as const },
      otherWork: {},
      end: { status: 'COMPLETED', retry_count: 1 },
    },
  ])('that was lost fences off a late $late: the event follows who holds it now', async (given) => {
    await using rig = await Rig.open();
    const [late, other] = await Promise.all([
      rig.start({ name: 'late', hold: { listener: 0 } }),
      rig.start({ name: 'other', retry: { backoffMs: 60_000 }, hold: { listener: 0 } }),
    ]);
    await rig.store([{ n: 1, ...given.work }]);
    await late.tick();
    await late.at('listener');
    await rig.database.query('UPDATE outbox_events SET payload = $1', [
      { n: 1, ...given.otherWork },
    ]);
    await rig.expireLeases();
    expect(await other.reap()).toBe(1);
    await rig.makeDue();
    await other.tick();
    await other.at('listener');
    const [held] = await rig.events();
    expect(held?.status).toBe('PROCESSING');

    late.tell({ do: 'go', point: 'listener' });
    await late.child.line(/the lease was lost to another process/, PATIENTLY);
    expect(await rig.events()).toEqual([held]);

    other.tell({ do: 'go', point: 'listener' });
    expect(await rig.untilNoneIs('PROCESSING')).toMatchObject([given.end]);
  });
});
