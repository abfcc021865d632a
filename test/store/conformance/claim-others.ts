import { describe, expect, it } from '@jest/globals';
import { type Subject, LEASE_MS, MINUTE, idsOf } from './subject.js';

export function describeClaimOthers(subject: Subject): void {
  function claimOthers(otherThan: string[], limit = 100) {
    return subject.store.claimOthers({ otherThan, limit, leaseMs: LEASE_MS });
  }

  describe('claimOthers', () => {
    it('takes due events of every type but those it is told, and leaves these', async () => {
      const [flood] = await subject.enqueueInOrder(5, { eventType: 'flood' });
      const [a] = await subject.enqueue({ eventType: 'a' }, { eventType: 'flood' });
      const [b] = await subject.enqueue({ eventType: 'b' });
      const claimed = await claimOthers(['flood', 'c']);
      expect(new Set(idsOf(claimed))).toEqual(new Set([a, b]));
      expect(await subject.row(flood!)).toMatchObject({ status: 'PENDING' });
      expect(await claimOthers(['flood'])).toEqual([]);
    });

    it('claims as a claim does: one new lease, PROCESSING until it ends', async () => {
      const [id] = await subject.enqueue({ eventType: 'a', payload: { a: 1 } });
      const [claimed] = await claimOthers(['b']);
      const row = await subject.row(id!);
      expect(claimed).toMatchObject({ id, eventType: 'a', payload: { a: 1 }, retryCount: 0 });
      expect(row).toMatchObject({ status: 'PROCESSING', leaseToken: claimed!.leaseToken });
      expect(Math.floor(row.leasedUntil! - LEASE_MS)).toBe(claimed!.claimedAt.getTime());
      expect(await subject.settle(claimed!, { outcome: 'completed' })).toEqual([id]);
    });

    it('gives each type its share, the oldest of each, however many there are of one', async () => {
      const a = await subject.enqueueInOrder(20, { eventType: 'a' });
      const b = await subject.enqueueInOrder(20, { eventType: 'b' });
      const [c] = await subject.enqueueInOrder(1, { eventType: 'c' });
      const claimed = idsOf(await claimOthers(['d'], 6));
      expect(claimed.toSorted()).toEqual([a[0]!, a[1]!, b[0]!, b[1]!, c!].toSorted());
    });

    it('keeps no share for types that have nothing due', async () => {
      const a = await subject.enqueueInOrder(6, { eventType: 'a' });
      const later = Array.from({ length: 20 }, (_, n) => ({
        eventType: `later ${n}`,
        delayMs: MINUTE,
      }));
      await subject.enqueue(...later);
      expect(idsOf(await claimOthers(['d'], 6)).toSorted()).toEqual(a.toSorted());
    });

    it('takes no more than it is told when there are more types than that', async () => {
      const types = Array.from({ length: 12 }, (_, n) => ({ eventType: `type ${n}` }));
      await subject.enqueue(...types);
      const seen = new Set<string>();
      for (let taken = 0; taken < 12; taken += 5) {
        const claimed = await claimOthers([], 5);
        expect(claimed).toHaveLength(Math.min(5, 12 - taken));
        for (const { eventType } of claimed) seen.add(eventType);
      }
      expect(seen.size).toBe(12);
    });

    it('answers oldest due first', async () => {
      const [first] = await subject.enqueueInOrder(2, { eventType: 'z' });
      await subject.pass(MINUTE);
      await subject.enqueueInOrder(2, { eventType: 'a' });
      const due = (await claimOthers([])).map(({ scheduledAt }) => scheduledAt.getTime());
      expect(due).toHaveLength(4);
      expect(due).toEqual(due.toSorted((x, y) => x - y));
      expect(due[0]).toBe(Math.floor((await subject.row(first!)).scheduledAt));
    });

    it('does not take the future, nor what is finished or claimed', async () => {
      await subject.enqueue({ eventType: 'a', delayMs: MINUTE });
      await subject.inState('COMPLETED');
      await subject.inState('FAILED');
      await subject.inState('PROCESSING');
      expect(await claimOthers(['b'])).toEqual([]);
      await subject.pass(MINUTE);
      expect(await claimOthers(['b'])).toHaveLength(1);
    });

    it('never gives two claimers the same event, nor one that another claim has taken', async () => {
      const ids = [
        ...(await subject.enqueueInOrder(60, { eventType: 'a' })),
        ...(await subject.enqueueInOrder(60, { eventType: 'b' })),
      ];
      const taken: string[] = [];
      const claimer = async (claim: () => Promise<{ id: string }[]>): Promise<void> => {
        for (;;) {
          const claimed = idsOf(await claim());
          taken.push(...claimed);
          if (claimed.length === 0) return;
        }
      };
      await Promise.all([
        ...[1, 2, 3].map(() => claimer(() => claimOthers([], 6))),
        ...[1, 2, 3].map(() => claimer(() => subject.claim(7))),
      ]);
      expect(taken).toHaveLength(120);
      expect(new Set(taken)).toEqual(new Set(ids));
    });
  });
}
