import { describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type { ClaimedEvent, ClaimRequest, Settlement } from '../../../src/store/outbox-store.js';
import { until } from '../../support/until.js';
import { type Subject, LEASE_MS, MINUTE, failed, idsOf, newEvent, retry } from './subject.js';

const COMPLETED = { outcome: 'completed' } as const;

export function describeSettleAndClaim(subject: Subject): void {
  const claim: ClaimRequest = { limit: 100, leaseMs: LEASE_MS };

  function settlement({ id, leaseToken }: ClaimedEvent, outcome: object): Settlement {
    return { id, leaseToken, ...outcome } as Settlement;
  }

  /** Claims until the store says that it has looked everywhere and there is nothing. */
  async function claimAll(): Promise<ClaimedEvent[]> {
    const all: ClaimedEvent[] = [];
    await until(
      async () => {
        const { claimed, lookedEverywhere } = await subject.store.settleAndClaim([], claim);
        all.push(...claimed);
        return lookedEverywhere && claimed.length === 0;
      },
      { what: 'a claim has looked everywhere in vain' },
    );
    return all;
  }

  describe('settleAndClaim', () => {
    it('settles what is finished, then claims what is due, oldest first', async () => {
      const ids = await subject.enqueueInOrder(6);
      const [a, b, c] = await subject.claim(3);
      const answer = await subject.store.settleAndClaim(
        [
          settlement(a!, COMPLETED),
          settlement(b!, retry({ retryCount: 1, lastError: 'because', acknowledgedBy: ['A.one'] })),
          settlement(c!, failed()),
        ],
        { limit: 2, leaseMs: LEASE_MS },
      );
      expect(answer.settled).toEqual(new Set([a!.id, b!.id, c!.id]));
      expect(idsOf(answer.claimed)).toEqual(ids.slice(3, 5));
      expect(await subject.row(a!.id)).toMatchObject({
        status: 'COMPLETED',
        processedAt: expect.any(Number),
        leaseToken: null,
        leasedUntil: null,
      });
      expect(await subject.row(b!.id)).toMatchObject({
        status: 'PENDING',
        retryCount: 1,
        lastError: 'because',
        acknowledgedBy: ['A.one'],
      });
      expect(await subject.row(c!.id)).toMatchObject({ status: 'FAILED', retryCount: 5 });
      const [claimed] = answer.claimed;
      expect(await subject.row(claimed!.id)).toMatchObject({
        status: 'PROCESSING',
        leaseToken: claimed!.leaseToken,
      });
    });

    it('claims the same way as a claim does', async () => {
      const [id] = await subject.enqueue({ payload: { a: [] }, metadata: { m: '10.5' } });
      const { claimed } = await subject.store.settleAndClaim([], claim);
      const [first] = claimed;
      const { claimedAt: _, leaseToken: __, ...seen } = first!;
      await subject.settle(first!, { outcome: 'released' });
      const [second] = await subject.claim();
      expect(second).toMatchObject(seen);
      expect(seen).toMatchObject({ id, payload: { a: [] }, metadata: { m: '10.5' } });
    });

    it('completed clears that nobody had listened for a while', async () => {
      const claimed = await subject.claimed();
      await subject.settle(claimed, { outcome: 'unheard', delayMs: 0 });
      const [again] = await subject.claim();
      await subject.store.settleAndClaim([settlement(again!, COMPLETED)], null);
      expect(await subject.row(claimed.id)).toMatchObject({
        status: 'COMPLETED',
        unheardSince: null,
      });
    });

    it('only settles when it is not told to claim', async () => {
      await subject.enqueueInOrder(2);
      const [a] = await subject.claim(1);
      const { settled, claimed } = await subject.store.settleAndClaim(
        [settlement(a!, COMPLETED)],
        null,
      );
      expect(settled).toEqual(new Set([a!.id]));
      expect(claimed).toEqual([]);
      expect(await subject.store.stats()).toMatchObject({ due: 1, processing: 0 });
    });

    it('only claims when there is nothing to settle', async () => {
      const ids = await subject.enqueueInOrder(2);
      const { settled } = await subject.store.settleAndClaim([], { limit: 1, leaseMs: LEASE_MS });
      expect(settled.size).toBe(0);
      expect(idsOf(await subject.claim())).toEqual(ids.slice(1));
    });

    it.each([
      ['completed', COMPLETED],
      ['retry', retry()],
      ['failed', failed()],
      ['unheard', { outcome: 'unheard', delayMs: MINUTE }],
      ['released', { outcome: 'released' }],
    ])('%s: what is not held any more is not settled, and said so', async (_, outcome) => {
      await subject.enqueueInOrder(3);
      const [held, lost, strange] = await subject.claim();
      await subject.settle(lost!, COMPLETED);
      const before = await Promise.all([lost, strange].map((event) => subject.row(event!.id)));
      const { settled } = await subject.store.settleAndClaim(
        [
          settlement(held!, outcome),
          settlement(lost!, outcome),
          settlement({ ...strange!, leaseToken: randomUUID() }, outcome),
          settlement({ ...held!, id: randomUUID() }, outcome),
        ],
        null,
      );
      expect(settled).toEqual(new Set([held!.id]));
      const after = await Promise.all([lost, strange].map((event) => subject.row(event!.id)));
      expect(after).toEqual(before);
    });

    it('a mixed batch answers exactly what was held', async () => {
      const ids = await subject.enqueueInOrder(40);
      const events = await subject.claim();
      const lost = events.filter((_, index) => index % 4 === 0);
      await subject.settle(lost, { outcome: 'released' });
      const { settled } = await subject.store.settleAndClaim(
        events.map((event, index) => settlement(event, index % 2 === 0 ? COMPLETED : retry())),
        null,
      );
      const expected = ids.filter((_, index) => index % 4 !== 0);
      expect(settled).toEqual(new Set(expected));
    });

    it('never gives two relays the same event, and settles each exactly once', async () => {
      const ids = await subject.enqueueInOrder(150);
      const settledIds: string[] = [];
      const relay = async (): Promise<void> => {
        for (let held: ClaimedEvent[] = []; settledIds.length < ids.length;) {
          const answer = await subject.store.settleAndClaim(
            held.map((event) => settlement(event, COMPLETED)),
            { limit: 7, leaseMs: LEASE_MS },
          );
          settledIds.push(...answer.settled);
          held = answer.claimed;
        }
      };
      await Promise.all(Array.from({ length: 6 }, relay));
      expect(settledIds).toHaveLength(150);
      expect(new Set(settledIds)).toEqual(new Set(ids));
    });

    it('finds what lies before all that was claimed: its shortcut is never the truth', async () => {
      await subject.enqueueInOrder(5);
      expect((await subject.store.settleAndClaim([], claim)).claimed).toHaveLength(5);
      const now = await subject.current.now();
      const [late] = await subject.enqueue({ scheduledAt: new Date(now - 60 * MINUTE) });
      expect(idsOf(await claimAll())).toEqual([late]);
    });

    it('finds an event however late its transaction commits', async () => {
      if (subject.current.begin === undefined) {
        const tx = { query: async () => ({ rows: [] }) };
        await expect(subject.store.enqueue([newEvent()], tx)).rejects.toThrow(/^tx cannot be used/);
        return;
      }
      const tx = await subject.current.begin();
      const early = newEvent();
      await subject.store.enqueue([early], tx.executor);
      await subject.enqueueInOrder(5);
      expect((await subject.store.settleAndClaim([], claim)).claimed).toHaveLength(5);
      await subject.pass(MINUTE);
      await tx.commit();
      expect(idsOf(await claimAll())).toEqual([early.id]);
    });
  });
}
