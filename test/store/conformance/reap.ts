import { describe, expect, it } from '@jest/globals';
import { type Subject, LEASE_MS, MINUTE, idsOf, retry } from './subject.js';

export function describeReap(subject: Subject): void {
  describe('reap', () => {
    it('takes over what a dead relay has left, under a lease of its own', async () => {
      const claimed = await subject.claimed({ payload: { a: 1 }, metadata: { m: 1 } });
      await subject.settle(
        claimed,
        retry({ retryCount: 2, acknowledgedBy: ['A.one'], delayMs: 0 }),
      );
      const [dying] = await subject.claim();
      await subject.pass(LEASE_MS + 1);
      const before = await subject.row(claimed.id);
      const [reaped, ...others] = await subject.reap(10, 90_000);
      expect(others).toEqual([]);
      expect(reaped).toEqual({
        id: claimed.id,
        leaseToken: expect.any(String),
        eventType: 'test.event',
        payload: { a: 1 },
        metadata: { m: 1 },
        retryCount: 2,
        acknowledgedBy: ['A.one'],
        scheduledAt: new Date(before.scheduledAt),
        createdAt: new Date(before.createdAt),
        unheardSince: null,
        claimedAt: expect.any(Date),
      });
      expect(reaped!.leaseToken).not.toBe(dying!.leaseToken);
      const row = await subject.row(claimed.id);
      expect(row).toEqual({
        ...before,
        leaseToken: reaped!.leaseToken,
        leasedUntil: expect.any(Number),
      });
      expect(Math.floor(row.leasedUntil! - 90_000)).toBe(reaped!.claimedAt.getTime());
    });

    it('leaves a lease that still runs', async () => {
      const claimed = await subject.claimed();
      await subject.pass(LEASE_MS - 5_000);
      const before = await subject.row(claimed.id);
      expect(await subject.reap()).toEqual([]);
      expect(await subject.row(claimed.id)).toEqual(before);
    });

    it.each(['PENDING', 'COMPLETED', 'FAILED'] as const)('never takes %s', async (status) => {
      const id = await subject.inState(status);
      await subject.pass(100 * 24 * 60 * MINUTE);
      const before = await subject.row(id);
      expect(await subject.reap()).toEqual([]);
      expect(await subject.row(id)).toEqual(before);
    });

    it('takes the longest expired first, so many as it is told', async () => {
      const [first] = await subject.enqueue({});
      await subject.claim();
      await subject.pass(1_000);
      const [second] = await subject.enqueue({});
      await subject.claim();
      await subject.pass(1_000);
      const [third] = await subject.enqueue({});
      await subject.claim();
      await subject.pass(LEASE_MS);
      expect(new Set(idsOf(await subject.reap(2)))).toEqual(new Set([first, second]));
      expect(idsOf(await subject.reap(2))).toEqual([third]);
      expect(await subject.reap(2)).toEqual([]);
    });

    it('takes it again when the reaper has died as well', async () => {
      const claimed = await subject.claimed();
      await subject.pass(LEASE_MS + 1);
      const [first] = await subject.reap();
      expect(await subject.reap()).toEqual([]);
      await subject.pass(LEASE_MS + 1);
      const [second] = await subject.reap();
      expect(second).toMatchObject({ id: claimed.id });
      expect(await subject.settle(first!, { outcome: 'completed' })).toEqual([]);
      expect(await subject.settle(second!, retry())).toEqual([claimed.id]);
      expect(await subject.row(claimed.id)).toMatchObject({ status: 'PENDING', retryCount: 1 });
    });

    it('never gives two reapers the same event', async () => {
      const ids = await subject.enqueueInOrder(100);
      await subject.claim(100);
      await subject.pass(LEASE_MS + 1);
      const taken: string[] = [];
      const reaper = async (): Promise<void> => {
        for (;;) {
          const reaped = idsOf(await subject.reap(7));
          taken.push(...reaped);
          if (reaped.length === 0) return;
        }
      };
      await Promise.all(Array.from({ length: 6 }, reaper));
      expect(taken).toHaveLength(100);
      expect(new Set(taken)).toEqual(new Set(ids));
    });
  });
}
