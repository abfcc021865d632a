import { describe, expect, it, jest } from '@jest/globals';
import { until } from '../support/until.js';
import { Rig } from './rig.js';

jest.setTimeout(120_000);

const numbers = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index);

/** Everything that was stored is there, and done. */
async function expectAllDelivered(rig: Rig, total: number): Promise<void> {
  const events = await rig.events();
  expect(events.map(({ n }) => n)).toEqual(numbers(1, total));
  expect(new Set(events.map(({ status }) => status))).toEqual(new Set(['COMPLETED']));
  const finished = (await rig.ledger()).filter(({ point }) => point === 'finished');
  expect(new Set(finished.map(({ n }) => n))).toEqual(new Set(numbers(1, total)));
}

describe('a relay that is killed', () => {
  it('after the claim, before any listener, loses nothing and repeats nothing: the crash counts as an attempt', async () => {
    await using rig = await Rig.open();
    await rig.store(numbers(1, 5).map((n) => ({ n })));
    const doomed = await rig.start({ hold: { claimed: 0 } });
    await doomed.at('claimed');
    await doomed.child.kill('SIGKILL');
    expect(await rig.ledger()).toEqual([]);

    await rig.untilSessionsAreGone();
    await rig.expireLeases();
    const survivor = await rig.start();
    await survivor.tick();
    for (const event of await rig.untilNoneIs('PROCESSING')) {
      expect(event).toMatchObject({ status: 'PENDING', retry_count: 1 });
      expect(event.last_error).toMatch(/lease ran out.*died, stalled/);
    }
    await rig.makeDue();
    await survivor.tick();
    await rig.untilEvery('COMPLETED');
    await expectAllDelivered(rig, 5);
    expect([...(await rig.calls()).values()]).toEqual([1, 1, 1, 1, 1]);
  });

  it('in a listener delivers again what was in flight, and counts the crash', async () => {
    await using rig = await Rig.open();
    await rig.store(numbers(1, 3).map((n) => ({ n })));
    const doomed = await rig.start({ hold: { listener: 0 } });
    await until(async () => (await rig.calls()).size === 3, {
      what: 'three listeners stand still',
    });
    await doomed.child.kill('SIGKILL');

    await rig.recover();
    const events = await rig.untilEvery('COMPLETED');
    await expectAllDelivered(rig, 3);
    expect(events.map(({ retry_count }) => retry_count)).toEqual([1, 1, 1]);
    expect((await rig.ledger()).filter(({ point }) => point === 'finished')).toHaveLength(3);
  });

  it('after the listener, before its outcome is sent, delivers once more: at least once', async () => {
    await using rig = await Rig.open();
    await rig.store([{ n: 1 }]);
    const doomed = await rig.start({ name: 'doomed', hold: { settling: 0 } });
    await doomed.at('settling');
    await doomed.child.kill('SIGKILL');

    await rig.recover();
    const [event] = await rig.untilEvery('COMPLETED');
    expect(event).toMatchObject({ retry_count: 1 });
    const finished = (await rig.ledger()).filter(({ point }) => point === 'finished');
    expect(finished.map(({ app, attempt }) => ({ app, attempt }))).toEqual([
      { app: 'doomed', attempt: 1 },
      { app: 'survivor', attempt: 2 },
    ]);
  });

  it('once the outcome is stored, though it has not heard so, has nothing delivered again', async () => {
    await using rig = await Rig.open();
    await rig.store([{ n: 1 }]);
    const doomed = await rig.start({ hold: { settled: 0 } });
    await doomed.at('settled');
    await doomed.child.kill('SIGKILL');

    await rig.recover();
    expect(await rig.events()).toMatchObject([{ status: 'COMPLETED', retry_count: 0 }]);
    expect(await rig.calls()).toEqual(new Map([[1, 1]]));
  });

  it('in the middle of a batch of 100 repeats only the ten in flight', async () => {
    await using rig = await Rig.open();
    await rig.store(numbers(1, 100).map((n) => ({ n })));
    const doomed = await rig.start({
      relay: { batchSize: 100, concurrency: 10 },
      hold: { listener: 30 },
    });
    const completed = async (): Promise<number> =>
      (await rig.events()).filter(({ status }) => status === 'COMPLETED').length;
    await until(async () => (await rig.calls()).size === 40 && (await completed()) === 30, {
      what: 'thirty are done and ten stand in the listener',
    });
    await doomed.child.kill('SIGKILL');
    const done = (await rig.events()).filter(({ status }) => status === 'COMPLETED');
    const inFlight = new Set((await rig.ledger()).map(({ n }) => n));
    for (const { n } of done) inFlight.delete(n);
    expect(inFlight.size).toBe(10);

    await rig.recover();
    await rig.untilEvery('COMPLETED');
    await expectAllDelivered(rig, 100);
    const repeated = [...(await rig.calls())].filter(([, calls]) => calls > 1);
    expect(new Map(repeated)).toEqual(new Map([...inFlight].map((n) => [n, 2])));
  });

  it('in the middle of a settle statement that the server goes on to finish has nothing delivered again', async () => {
    await using rig = await Rig.open();
    const settle = await killedWhileSettling(rig);
    await settle.unlock();
    await rig.untilEvery('COMPLETED');

    await rig.recover();
    expect(await rig.events()).toMatchObject([{ status: 'COMPLETED', retry_count: 0 }]);
    expect(await rig.calls()).toEqual(new Map([[1, 1]]));
  });

  it('in the middle of a settle statement that the server breaks off has the event delivered again', async () => {
    await using rig = await Rig.open();
    const settle = await killedWhileSettling(rig);
    await rig.database.query('SELECT pg_terminate_backend($1, 5000)', [settle.backend]);
    await settle.unlock();
    expect(await rig.events()).toMatchObject([{ status: 'PROCESSING' }]);

    await rig.recover();
    expect(await rig.untilEvery('COMPLETED')).toMatchObject([{ retry_count: 1 }]);
    expect(await rig.calls()).toEqual(new Map([[1, 2]]));
  });

  it('in its reaper, between taking over and judging, leaves the events to the next reaper: the dead one counts once', async () => {
    await using rig = await Rig.open();
    await rig.store(numbers(1, 3).map((n) => ({ n })));
    await rig.database.query(
      `UPDATE outbox_events SET status = 'PROCESSING', lease_token = gen_random_uuid(),
         leased_until = now() - interval '1 hour'`,
    );
    const doomed = rig.launch({ hold: { reaped: 0 } });
    await doomed.at('reaped');
    await doomed.child.kill('SIGKILL');
    expect(new Set((await rig.events()).map(({ status }) => status))).toEqual(
      new Set(['PROCESSING']),
    );

    await rig.recover();
    const events = await rig.untilEvery('COMPLETED');
    expect(events.map(({ retry_count }) => retry_count)).toEqual([1, 1, 1]);
    await expectAllDelivered(rig, 3);
  });

  it('during its shutdown, while it waits for a listener, has the event delivered again', async () => {
    await using rig = await Rig.open();
    await rig.store([{ n: 1 }]);
    const doomed = await rig.start({ hold: { listener: 0 } });
    await doomed.at('listener');
    doomed.child.kill('SIGTERM').catch(() => {});
    await doomed.child.message('stopping');
    await doomed.child.kill('SIGKILL');

    await rig.recover();
    expect(await rig.untilEvery('COMPLETED')).toMatchObject([{ retry_count: 1 }]);
    await expectAllDelivered(rig, 1);
  });

  it('during its shutdown, while it gives events back, has them delivered again', async () => {
    await using rig = await Rig.open();
    await rig.store([{ n: 1 }]);
    const doomed = await rig.start({
      relay: { shutdownTimeoutMs: 0 },
      hold: { listener: 0, settling: 0 },
    });
    await doomed.at('listener');
    doomed.child.kill('SIGTERM').catch(() => {});
    await doomed.at('settling');
    await doomed.child.kill('SIGKILL');

    await rig.recover();
    expect(await rig.untilEvery('COMPLETED')).toMatchObject([{ retry_count: 1 }]);
    await expectAllDelivered(rig, 1);
  });
});

describe('a listener that ends the process', () => {
  it('each time makes its event a dead letter after five crashes, and no more', async () => {
    await using rig = await Rig.open();
    await rig.store([{ n: 1, act: 'exit' }]);
    for (let crashes = 0; crashes < 5; crashes++) {
      await rig.untilSessionsAreGone();
      await rig.expireLeases();
      const doomed = rig.launch({ retry: { backoffMs: 0 } });
      expect(await doomed.child.exited).toEqual({ code: 1, signal: null });
      expect(await rig.events()).toMatchObject([{ status: 'PROCESSING', retry_count: crashes }]);
    }
    expect(await rig.calls()).toEqual(new Map([[1, 5]]));

    await rig.recover();
    expect(await rig.events()).toMatchObject([{ status: 'FAILED', retry_count: 5 }]);
    expect(await rig.calls()).toEqual(new Map([[1, 5]]));
  });
});

/** A process that was killed while its settle statement waits for a row that somebody else has locked. */
async function killedWhileSettling(
  rig: Rig,
): Promise<{ backend: number; unlock: () => Promise<void> }> {
  await rig.store([{ n: 1 }]);
  const doomed = await rig.start({ hold: { listener: 0 } });
  await doomed.at('listener');
  const stranger = await rig.stranger('SELECT 1 FROM outbox_events FOR UPDATE');
  doomed.tell({ do: 'go', point: 'listener' });
  const backend = await rig.untilBlocked('settle');
  await doomed.child.kill('SIGKILL');
  return { backend, unlock: () => stranger.end('ROLLBACK') };
}
