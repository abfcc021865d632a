import { describe, expect, it, jest } from '@jest/globals';
import { until } from '../support/until.js';
import type { Child } from '../support/child.js';
import { PATIENTLY, Rig } from './rig.js';

jest.setTimeout(120_000);

const LIMIT_MS = 1_000;

async function terminate(child: Child, times = 1): Promise<number> {
  const startedAt = performance.now();
  for (let time = 0; time < times; time++) child.kill('SIGTERM').catch(() => {});
  expect(await child.exited).toEqual({ code: null, signal: 'SIGTERM' });
  return performance.now() - startedAt;
}

describe('a process that is told to end', () => {
  it('waits for a listener at work, and stores its success', async () => {
    await using rig = await Rig.open();
    await rig.store([{ n: 1, act: 'sleep', ms: 300 }]);
    const app = await rig.start();
    await app.child.message('started');
    await terminate(app.child);
    expect(await rig.events()).toMatchObject([{ status: 'COMPLETED', retry_count: 0 }]);
  });

  it('with a listener that hangs ends within its limit and gives the event back: PENDING, due, no attempt spent', async () => {
    await using rig = await Rig.open();
    await rig.store([{ n: 1, act: 'hang' }, { n: 2 }]);
    const app = await rig.start({ relay: { shutdownTimeoutMs: LIMIT_MS } });
    await app.child.message('finished');
    const tookMs = await terminate(app.child);
    expect(tookMs).toBeGreaterThanOrEqual(LIMIT_MS - 50);
    expect(tookMs).toBeLessThan(LIMIT_MS + 2_000);
    expect(await rig.events()).toMatchObject([
      { n: 1, status: 'PENDING', retry_count: 0, last_error: null },
      { n: 2, status: 'COMPLETED', retry_count: 0 },
    ]);
    const [due] = await rig.database.query(
      'SELECT scheduled_at <= now() AS due FROM outbox_events',
    );
    expect(due).toEqual({ due: true });
  });

  it('gives back at once what it has claimed and not begun', async () => {
    await using rig = await Rig.open();
    await rig.store(Array.from({ length: 50 }, (_, n) => ({ n, act: 'hang' as const })));
    const app = await rig.start({ relay: { concurrency: 2, shutdownTimeoutMs: 30_000 } });
    await until(async () => (await rig.calls()).size === 2, {
      what: 'two listeners are at work',
      ...PATIENTLY,
    });
    app.child.kill('SIGTERM').catch(() => {});
    await app.child.message('stopping');
    const processing = async (): Promise<number> =>
      (await rig.events()).filter(({ status }) => status === 'PROCESSING').length;
    await until(async () => (await processing()) === 2, { what: '48 are back' });
    expect(new Set((await rig.events()).map(({ retry_count }) => retry_count))).toEqual(
      new Set([0]),
    );
    expect((await rig.calls()).size).toBe(2);
  });

  it('twice ends as if told once', async () => {
    await using rig = await Rig.open();
    await rig.store([{ n: 1, act: 'hang' }]);
    const app = await rig.start({ relay: { shutdownTimeoutMs: LIMIT_MS } });
    await app.child.message('started');
    const tookMs = await terminate(app.child, 2);
    expect(tookMs).toBeGreaterThanOrEqual(LIMIT_MS - 50);
    expect(tookMs).toBeLessThan(LIMIT_MS + 2_000);
    expect(await rig.events()).toMatchObject([{ status: 'PENDING', retry_count: 0 }]);
  });

  it('while the answer to a claim is under way gives back what it brings', async () => {
    await using rig = await Rig.open();
    const app = await rig.start();
    const stranger = await rig.stranger('LOCK TABLE outbox_events IN ACCESS EXCLUSIVE MODE');
    app.tell({ do: 'tick' });
    await rig.untilBlocked('claim');
    await stranger.query(`SELECT outbox_enqueue('[{"event_type": "work", "payload": {"n": 1}}]')`);
    app.child.kill('SIGTERM').catch(() => {});
    await app.child.message('stopping');
    await stranger.end('COMMIT');
    await app.child.exited;
    expect(await rig.events()).toMatchObject([{ status: 'PENDING', retry_count: 0 }]);
    expect(await rig.ledger()).toEqual([]);
  });

  it('right after its start, while pg-boss is being opened, leaves nothing behind', async () => {
    await using rig = await Rig.open();
    const app = await rig.start({ boss: 'own', pool: 'own' });
    app.tell({ do: 'close' });
    await app.child.message('closed');
    expect(await app.child.exited).toEqual({ code: 0, signal: null });
  });
});
