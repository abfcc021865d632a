import { describe, expect, it } from '@jest/globals';
import { type Subject, LEASE_MS, MINUTE, idsOf, retry } from './subject.js';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export function describeClaim(subject: Subject): void {
  describe('claim', () => {
    it('answers the event with its lease, and leaves the row PROCESSING until the lease ends', async () => {
      const [id] = await subject.enqueue({ payload: { a: 1 }, metadata: { m: 1 } });
      const before = await subject.row(id!);
      let claimed: Awaited<ReturnType<Subject['claim']>> = [];
      const [from, to] = await subject.timed(async () => {
        claimed = await subject.claim(10, 90_000);
      });
      const [event] = claimed;
      expect(claimed).toHaveLength(1);
      expect(event).toEqual({
        id,
        leaseToken: expect.stringMatching(UUID),
        eventType: 'test.event',
        payload: { a: 1 },
        metadata: { m: 1 },
        retryCount: 0,
        acknowledgedBy: [],
        scheduledAt: new Date(before.scheduledAt),
        createdAt: new Date(before.createdAt),
        unheardSince: null,
        claimedAt: expect.any(Date),
      });
      expect(event!.claimedAt.getTime()).toBeGreaterThanOrEqual(Math.floor(from));
      expect(event!.claimedAt.getTime()).toBeLessThanOrEqual(to);

      const row = await subject.row(id!);
      expect(row).toEqual({
        ...before,
        status: 'PROCESSING',
        leaseToken: event!.leaseToken,
        leasedUntil: expect.any(Number),
      });
      expect(Math.floor(row.leasedUntil! - 90_000)).toBe(event!.claimedAt.getTime());
    });

    it('answers what earlier attempts have left', async () => {
      const first = await subject.claimed();
      await subject.settle(
        first,
        retry({ retryCount: 3, acknowledgedBy: ['A.one', 'B.two'], delayMs: 0 }),
      );
      const [again] = await subject.claim();
      expect(again).toMatchObject({ retryCount: 3, acknowledgedBy: ['A.one', 'B.two'] });
    });

    it('takes the oldest due first, so many as it is told', async () => {
      // Stored in another order than they are due.
      const now = await subject.current.now();
      const due = (secondsAgo: number) => ({ scheduledAt: new Date(now - secondsAgo * 1_000) });
      const [third, first, second] = await subject.enqueue(due(10), due(30), due(20));
      expect(idsOf(await subject.claim(2))).toEqual([first, second]);
      expect(idsOf(await subject.claim(2))).toEqual([third]);
      expect(await subject.claim(2)).toEqual([]);
    });

    it('takes a retry whose time has come before what was due later', async () => {
      const first = await subject.claimed();
      await subject.settle(first, retry({ delayMs: MINUTE }));
      await subject.pass(2 * MINUTE);
      const [younger] = await subject.enqueue({});
      expect(idsOf(await subject.claim())).toEqual([first.id, younger]);
    });

    it('does not take the future, and takes it when it has come', async () => {
      const [delayed, scheduled] = await subject.enqueue(
        { delayMs: 2 * MINUTE },
        { scheduledAt: new Date((await subject.current.now()) + 5 * MINUTE) },
      );
      expect(await subject.claim()).toEqual([]);
      await subject.pass(2 * MINUTE);
      expect(idsOf(await subject.claim())).toEqual([delayed]);
      await subject.pass(3 * MINUTE);
      expect(idsOf(await subject.claim())).toEqual([scheduled]);
    });

    it('takes nothing twice, however long the lease has run out', async () => {
      await subject.claimed();
      expect(await subject.claim()).toEqual([]);
      await subject.pass(10 * LEASE_MS);
      expect(await subject.claim()).toEqual([]);
    });

    it.each(['COMPLETED', 'FAILED', 'PROCESSING'] as const)('never takes %s', async (status) => {
      await subject.inState(status);
      await subject.pass(100 * 24 * 60 * MINUTE);
      expect(await subject.claim()).toEqual([]);
    });

    it('takes an event with a high count: what can be retried never dies', async () => {
      const id = await subject.inState('PENDING');
      expect(await subject.claim()).toMatchObject([{ id, retryCount: 9 }]);
    });

    it('gives each claim a lease of its own', async () => {
      await subject.enqueueInOrder(3);
      const tokens = [
        ...(await subject.claim(1)),
        ...(await subject.claim(1)),
        ...(await subject.claim(1)),
      ].map(({ leaseToken }) => leaseToken);
      expect(new Set(tokens).size).toBe(3);
    });

    it('never gives two claimers the same event', async () => {
      const ids = await subject.enqueueInOrder(200);
      const taken: string[] = [];
      const claimer = async (): Promise<void> => {
        for (;;) {
          const claimed = idsOf(await subject.claim(7));
          taken.push(...claimed);
          if (claimed.length === 0) return;
        }
      };
      await Promise.all(Array.from({ length: 8 }, claimer));
      expect(taken).toHaveLength(200);
      expect(new Set(taken)).toEqual(new Set(ids));
    });

    it('is not kept from newer events by older ones that fail again and again', async () => {
      const poison = await subject.enqueueInOrder(25, { eventType: 'poison' });
      await subject.enqueueInOrder(5, { eventType: 'good' });
      const calls: string[] = [];
      let claims = 0;
      for (;;) {
        claims += 1;
        const batch = await subject.claim(10);
        if (batch.length === 0) break;
        for (const event of batch) {
          calls.push(event.id);
          await subject.settle(
            event,
            event.eventType === 'poison' ? retry() : { outcome: 'completed' },
          );
        }
      }
      expect(calls).toHaveLength(30);
      expect(new Set(calls).size).toBe(30);
      expect(claims).toBe(4);
      expect(await subject.store.stats()).toMatchObject({ due: 0, scheduled: poison.length });
    });
  });
}
