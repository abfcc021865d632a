import { describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { type Subject, LEASE_MS, MINUTE, failed, retry } from './subject.js';

export function describeStatsAndFind(subject: Subject): void {
  describe('stats', () => {
    it('of nothing are zeros', async () => {
      await subject.current.analyze();
      expect(await subject.store.stats()).toEqual({
        due: 0,
        scheduled: 0,
        processing: 0,
        failed: 0,
        completedEstimate: 0,
        oldestDueAgeMs: null,
        unheard: {},
      });
    });

    it('count each state, tell due from scheduled, and estimate what is done', async () => {
      for (let count = 0; count < 4; count++) await subject.completed();
      await subject.dead({}, {}, {});
      await subject.enqueue({ delayMs: MINUTE }, { delayMs: MINUTE });
      await subject.claimed();
      await subject.settle(await subject.claimed(), retry());
      await subject.enqueueInOrder(5);
      await subject.current.analyze();
      expect(await subject.store.stats()).toEqual({
        due: 5,
        scheduled: 3,
        processing: 1,
        failed: 3,
        completedEstimate: 4,
        oldestDueAgeMs: expect.any(Number),
        unheard: {},
      });
    });

    it('never estimate less than nothing', async () => {
      await subject.current.analyze();
      await subject.enqueueInOrder(3);
      const { completedEstimate } = await subject.store.stats();
      expect(completedEstimate).toBe(0);
    });

    it('tell the age of the oldest due event by the store’s clock', async () => {
      await subject.enqueue({ delayMs: MINUTE });
      expect(await subject.store.stats()).toMatchObject({ due: 0, oldestDueAgeMs: null });
      await subject.enqueue({}, { scheduledAt: new Date((await subject.current.now()) - MINUTE) });
      const young = (await subject.store.stats()).oldestDueAgeMs!;
      expect(young).toBeGreaterThanOrEqual(MINUTE);
      expect(young).toBeLessThan(MINUTE + 10_000);
      await subject.pass(5 * MINUTE);
      const old = (await subject.store.stats()).oldestDueAgeMs!;
      expect(old).toBeGreaterThanOrEqual(6 * MINUTE);
      expect(old).toBeLessThan(6 * MINUTE + 20_000);
    });

    it('see an expired lease as what it is until it is reaped: processing', async () => {
      await subject.claimed();
      await subject.pass(2 * LEASE_MS);
      expect(await subject.store.stats()).toMatchObject({ processing: 1, due: 0 });
    });

    it('count what waits for a listener, by type, until somebody has listened', async () => {
      const unheard = { outcome: 'unheard', delayMs: 0 } as const;
      for (const eventType of ['a', 'b', 'b', 'it"s 견적']) {
        const claimed = await subject.claimed({ eventType });
        await subject.settle(claimed, { ...unheard, delayMs: MINUTE });
      }
      expect((await subject.store.stats()).unheard).toEqual({ a: 1, b: 2, 'it"s 견적': 1 });
      await subject.pass(MINUTE);
      const events = await subject.claim();
      expect((await subject.store.stats()).unheard).toEqual({});
      const of = (type: string) => events.filter(({ eventType }) => eventType === type);
      await subject.settle(of('a'), { outcome: 'completed' });
      await subject.settle(of('b').slice(0, 1), failed());
      await subject.settle(of('b').slice(1), { outcome: 'released' });
      await subject.settle(of('it"s 견적'), retry());
      expect((await subject.store.stats()).unheard).toEqual({ b: 1 });
    });
  });

  describe('find', () => {
    it.each(['PENDING', 'PROCESSING', 'COMPLETED', 'FAILED'] as const)(
      'finds what is %s, with all there is to know',
      async (status) => {
        const id = await subject.inState(status);
        const row = await subject.row(id);
        const { leaseToken, leasedUntil, ...shown } = row;
        expect(leaseToken === null).toBe(status !== 'PROCESSING');
        expect(leasedUntil === null).toBe(status !== 'PROCESSING');
        expect(await subject.store.find(id)).toEqual({
          ...shown,
          createdAt: new Date(row.createdAt),
          scheduledAt: new Date(row.scheduledAt),
          processedAt: row.processedAt === null ? null : new Date(row.processedAt),
          leasedUntil: leasedUntil === null ? null : new Date(leasedUntil),
        });
      },
    );

    it('answers null for what is not there', async () => {
      expect(await subject.store.find(randomUUID())).toBeNull();
    });
  });

  describe('check', () => {
    it('is content with a store that is what the code needs', async () => {
      await expect(subject.store.check()).resolves.toBeUndefined();
    });
  });
}
