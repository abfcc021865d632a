import { describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { type Subject, LEASE_MS, idsOf } from './subject.js';

export function describeRenew(subject: Subject): void {
  describe('renew', () => {
    it('prolongs leases from the store’s now, and changes nothing else', async () => {
      await subject.enqueueInOrder(2);
      const events = await subject.claim();
      await subject.pass(LEASE_MS / 2);
      const before = await subject.row(events[0]!.id);
      let renewed: string[] = [];
      const [from, to] = await subject.timed(async () => {
        renewed = await subject.store.renew(events, 90_000);
      });
      expect(renewed.toSorted()).toEqual(idsOf(events).toSorted());
      const row = await subject.row(events[0]!.id);
      expect(row).toEqual({ ...before, leasedUntil: expect.any(Number) });
      expect(row.leasedUntil).toBeGreaterThanOrEqual(from + 90_000);
      expect(row.leasedUntil).toBeLessThanOrEqual(to + 90_000);
    });

    it('keeps the event from the reaper for as long as it is repeated', async () => {
      const claimed = await subject.claimed();
      for (let third = 0; third < 9; third++) {
        await subject.pass(LEASE_MS / 3);
        expect(await subject.store.renew([claimed], LEASE_MS)).toEqual([claimed.id]);
        expect(await subject.reap()).toEqual([]);
      }
      await subject.pass(LEASE_MS + 1);
      expect(idsOf(await subject.reap())).toEqual([claimed.id]);
    });

    it('saves a lease that has run out, as long as nobody has taken the event', async () => {
      const claimed = await subject.claimed();
      await subject.pass(2 * LEASE_MS);
      expect(await subject.store.renew([claimed], LEASE_MS)).toEqual([claimed.id]);
      expect(await subject.reap()).toEqual([]);
    });

    it('answers only what is still held, and leaves the rest alone', async () => {
      await subject.enqueueInOrder(4);
      const [held, done, lost, strange] = await subject.claim();
      await subject.settle(done!, { outcome: 'completed' });
      await subject.settle(lost!, { outcome: 'released' });
      const before = await Promise.all([done, lost, strange].map((e) => subject.row(e!.id)));
      const leases = [
        held!,
        done!,
        lost!,
        { ...strange!, leaseToken: randomUUID() },
        { ...held!, id: randomUUID() },
      ];
      expect(await subject.store.renew(leases, LEASE_MS)).toEqual([held!.id]);
      const after = await Promise.all([done, lost, strange].map((e) => subject.row(e!.id)));
      expect(after).toEqual(before);
    });

    it('fails for the old holder once the event was reaped', async () => {
      const claimed = await subject.claimed();
      await subject.pass(LEASE_MS + 1);
      const [reaped] = await subject.reap();
      expect(await subject.store.renew([claimed], LEASE_MS)).toEqual([]);
      expect(await subject.store.renew([reaped!], LEASE_MS)).toEqual([claimed.id]);
    });

    it('does nothing when there is nothing to renew', async () => {
      expect(await subject.store.renew([], LEASE_MS)).toEqual([]);
    });
  });
}
