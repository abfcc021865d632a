import { describe, expect, it, jest } from '@jest/globals';
import { Rig, type Note } from '../crash/rig.js';
import { until } from '../support/until.js';

jest.setTimeout(120_000);

const byN = (notes: readonly Note[], n: number, point: Note['point']): Note | undefined =>
  notes.find((note) => note.n === n && note.point === point);

async function startedAfterMs(
  rig: Rig,
  n: number,
  from: 'created_at' | 'scheduled_at',
): Promise<number[]> {
  const rows = await rig.database.query<{ ms: number }>(
    `SELECT extract(epoch FROM at - ${from})::float8 * 1000 AS ms
     FROM ledger JOIN outbox_events ON outbox_events.id = event
     WHERE n = $1 AND point = 'started' ORDER BY ledger.id`,
    [n],
  );
  return rows.map(({ ms }) => ms);
}

// The next tick is 15 seconds away, and here never comes: whatever happens soon, a wake has done.
const SOON_MS = 250;

describe('between two ticks', () => {
  it('a slow listener holds back nobody but itself', async () => {
    await using rig = await Rig.open();
    await rig.store([
      { n: 0, act: 'sleep', ms: 1_000 },
      ...Array.from({ length: 29 }, (_, index) => ({ n: index + 1 })),
    ]);
    const app = await rig.start({ relay: { concurrency: 2, batchSize: 10 } });
    await rig.untilEvery('COMPLETED');
    const notes = await rig.ledger();
    const slow = byN(notes, 0, 'finished')?.at.getTime() ?? 0;
    const others = notes.filter(({ n, point }) => n > 0 && point === 'finished');
    expect(others).toHaveLength(29);
    expect(Math.max(...others.map(({ at }) => at.getTime()))).toBeLessThan(slow);
    expect(app.child.stderr).toBe('');
  });

  it('an event enqueued while a listener is at work is delivered at once', async () => {
    await using rig = await Rig.open();
    const app = await rig.start();
    app.tell({ do: 'enqueue', work: [{ n: 1, act: 'sleep', ms: 1_500 }] });
    await app.child.message('started');
    app.tell({ do: 'enqueue', work: [{ n: 2 }] });
    await rig.untilEvery('COMPLETED');
    const [delayMs] = await startedAfterMs(rig, 2, 'created_at');
    expect(delayMs).toBeLessThan(SOON_MS);
    const notes = await rig.ledger();
    expect(byN(notes, 2, 'finished')?.at.getTime()).toBeLessThan(
      byN(notes, 1, 'finished')?.at.getTime() ?? 0,
    );
  });

  it('an event enqueued by a process that does not relay is delivered at once by one that does', async () => {
    await using rig = await Rig.open();
    const relay = await rig.start({ pool: 'own' });
    const producer = await rig.start({ pool: 'own', relay: false });
    // Until the relay listens, which nobody can see, only a tick would find it.
    await until(
      async () => {
        producer.tell({ do: 'enqueue', work: [{ n: 1 }] });
        await producer.child.message('enqueued');
        return relay.child.messages.some(({ type }) => type === 'finished');
      },
      { what: 'the relay listens', everyMs: 200 },
    );
    producer.tell({ do: 'enqueue', work: [{ n: 2 }] });
    await producer.child.message('enqueued');
    await rig.untilEvery('COMPLETED');
    const [delayMs] = await startedAfterMs(rig, 2, 'created_at');
    expect(delayMs).toBeLessThan(SOON_MS);
  });

  it('a relay with a backlog calls the others', async () => {
    await using rig = await Rig.open();
    const settings = { pool: 'own', relay: { batchSize: 10, concurrency: 1 } } as const;
    const first = await rig.start({ ...settings, name: 'first' });
    await rig.start({ ...settings, name: 'second' });
    await rig.store(Array.from({ length: 200 }, (_, n) => ({ n, act: 'sleep' as const, ms: 20 })));
    await first.tick();
    await rig.untilEvery('COMPLETED');
    const apps = new Set((await rig.ledger()).map(({ app }) => app));
    expect(apps).toEqual(new Set(['first', 'second']));
  });

  it('a delayed event comes close to its time, and not before', async () => {
    await using rig = await Rig.open();
    const app = await rig.start();
    app.tell({ do: 'enqueue', work: [{ n: 1 }], delayMs: 300 });
    await rig.untilEvery('COMPLETED');
    const [lateMs] = await startedAfterMs(rig, 1, 'scheduled_at');
    expect(lateMs).toBeGreaterThanOrEqual(0);
    expect(lateMs).toBeLessThan(SOON_MS);
  });

  it('a short backoff is kept', async () => {
    await using rig = await Rig.open();
    const app = await rig.start({ retry: { maxRetries: 3, backoffMs: 200 } });
    app.tell({ do: 'enqueue', work: [{ n: 1, act: 'fail' }] });
    expect(await rig.untilEvery('FAILED')).toMatchObject([{ retry_count: 3 }]);
    const [first = 0, second = 0, third = 0] = await startedAfterMs(rig, 1, 'created_at');
    for (const waitMs of [second - first, third - second]) {
      expect(waitMs).toBeGreaterThanOrEqual(200);
      expect(waitMs).toBeLessThan(200 + SOON_MS);
    }
  });

  it.each([
    { which: 'whose end the outbox can see', unseen: false },
    { which: 'whose end the outbox cannot see', unseen: true },
  ])(
    'an event enqueued in a transaction $which is delivered soon after the commit',
    async ({ unseen }) => {
      await using rig = await Rig.open();
      const app = await rig.start();
      app.tell({ do: 'enqueueInTransaction', work: { n: 1 }, commitAfterMs: 200, unseen });
      await app.child.message('committed');
      const committedAt = Date.now();
      await app.child.message('started');
      expect(Date.now() - committedAt).toBeLessThan(2 * SOON_MS);
      await rig.untilEvery('COMPLETED');
    },
  );
});
