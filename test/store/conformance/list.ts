import { describe, expect, it } from '@jest/globals';
import type { EventPageRequest } from '../../../src/store/outbox-store.js';
import { LEASE_MS, MINUTE, type Subject, idsOf, retry } from './subject.js';

export function describeList(subject: Subject): void {
  async function rest(request: Omit<EventPageRequest, 'limit'>, limit = 2): Promise<string[][]> {
    const pages: string[][] = [];
    for (let after = request.after; ;) {
      const { items, next } = await subject.store.list({ ...request, limit, after });
      pages.push(idsOf(items));
      if (next === null) return pages;
      after = next;
    }
  }

  describe('the list of events that are not finished', () => {
    it('tells what there is to know of each, but for what may be large', async () => {
      const [id] = await subject.enqueue({ payload: { big: 'x' }, metadata: { m: 1 } });
      const { createdAt, scheduledAt } = await subject.row(id!);
      const { items } = await subject.store.list({ state: 'due', limit: 10 });
      expect(items).toEqual([
        {
          id,
          eventType: 'test.event',
          status: 'PENDING',
          retryCount: 0,
          lastError: null,
          acknowledgedBy: [],
          scheduledAt: new Date(scheduledAt),
          createdAt: new Date(createdAt),
          leasedUntil: null,
          unheardSince: null,
        },
      ]);
    });

    it('tells due, scheduled and processing apart, and none of them from what is finished', async () => {
      await subject.completed();
      await subject.dead({});
      const held = await subject.claimed();
      const [due] = await subject.enqueue({});
      const [later] = await subject.enqueue({ delayMs: MINUTE });
      expect(await rest({ state: 'due' })).toEqual([[due]]);
      expect(await rest({ state: 'scheduled' })).toEqual([[later]]);
      expect(await rest({ state: 'processing' })).toEqual([[held.id]]);
      await subject.pass(MINUTE);
      expect(await rest({ state: 'due' })).toEqual([[due, later]]);
      expect(await rest({ state: 'scheduled' })).toEqual([[]]);
    });

    it('shows until when an event in flight is held, and what has been waiting for a listener', async () => {
      const held = await subject.claimed();
      const [shown] = (await subject.store.list({ state: 'processing', limit: 1 })).items;
      const leasedUntil = shown!.leasedUntil!.getTime();
      expect(leasedUntil - held.claimedAt.getTime()).toBeCloseTo(LEASE_MS, -1);
      await subject.settle(held, { outcome: 'unheard', delayMs: MINUTE });
      const [waiting] = (await subject.store.list({ state: 'scheduled', limit: 1 })).items;
      expect(waiting).toMatchObject({ leasedUntil: null, unheardSince: expect.any(Date) });
    });

    it('shows the last error of what is tried again', async () => {
      await subject.settle(await subject.claimed(), retry({ acknowledgedBy: ['A.one'] }));
      const { items } = await subject.store.list({ state: 'scheduled', limit: 1 });
      expect(items).toMatchObject([
        { retryCount: 1, lastError: 'it failed', acknowledgedBy: ['A.one'] },
      ]);
    });

    it.each(['due', 'scheduled', 'processing'] as const)(
      'of %s events has the first one due in front, page by page',
      async (state) => {
        const ids = await subject.enqueueInOrder(5);
        if (state === 'processing') await subject.claim();
        if (state === 'scheduled') await subject.pass(-MINUTE);
        const [a, b, c, d, e] = ids;
        expect(await rest({ state })).toEqual([[a, b], [c, d], [e]]);
        expect(await rest({ state }, 5)).toEqual([ids]);
      },
    );

    it('keeps to one type from page to page', async () => {
      const x = await subject.enqueueInOrder(3, { eventType: 'x' });
      await subject.enqueueInOrder(3, { eventType: 'y' });
      expect(await rest({ state: 'due', eventType: 'x' })).toEqual([x.slice(0, 2), x.slice(2)]);
    });

    it('stays right while rows are taken: none twice, none skipped', async () => {
      const [a, b, c, d] = await subject.enqueueInOrder(4);
      const first = await subject.store.list({ state: 'due', limit: 2 });
      expect(idsOf(first.items)).toEqual([a, b]);
      await subject.claim(2);
      expect(await rest({ state: 'due', after: first.next! })).toEqual([[c, d]]);
    });

    it('splits what is due in the same moment over pages, none twice, none skipped', async () => {
      const ids = await subject.enqueue({}, {}, {}, {}, {});
      const pages = await rest({ state: 'due' });
      expect(pages.map((page) => page.length)).toEqual([2, 2, 1]);
      expect(pages.flat().toSorted()).toEqual(ids.toSorted());
    });

    it.each(["'; DROP TABLE victim; --", '', 'x'])(
      'refuses %p as a place to go on',
      async (after) => {
        await expect(subject.store.list({ state: 'due', limit: 1, after })).rejects.toThrow(
          /after must be the "next" of an earlier page/,
        );
      },
    );
  });
}
