import { describe, expect, it } from '@jest/globals';
import { OutboxError } from '../../../src/event/outbox-error.js';
import type { DeadLetterPageRequest } from '../../../src/store/outbox-store.js';
import { type Subject, failed, idsOf } from './subject.js';

export function describeDeadLetters(subject: Subject): void {
  async function page(request: Partial<DeadLetterPageRequest> = {}) {
    const { items, next } = await subject.store.deadLetters({ limit: 2, ...request });
    return { ids: idsOf(items), next, items };
  }

  /** From this page to the last. */
  async function rest(request: Partial<DeadLetterPageRequest>): Promise<string[][]> {
    const pages: string[][] = [];
    for (let after = request.after; ;) {
      const { ids, next } = await page({ ...request, ...(after !== undefined && { after }) });
      pages.push(ids);
      if (next === null) return pages;
      after = next;
    }
  }

  /** So many that were set aside in the same moment. */
  async function deadTogether(count: number): Promise<string[]> {
    await subject.enqueue(...Array.from({ length: count }, () => ({})));
    const claimed = await subject.claim(count);
    await subject.settle(claimed, failed());
    return idsOf(claimed);
  }

  describe('the list of dead letters', () => {
    it('tells all there is to know of each', async () => {
      const claimed = await subject.claimed({ payload: { a: [1] }, metadata: { m: 1 } });
      await subject.settle(
        claimed,
        failed({ retryCount: 5, lastError: 'no phone', acknowledgedBy: ['A.one'] }),
      );
      const row = await subject.row(claimed.id);
      expect((await page()).items).toEqual([
        {
          id: claimed.id,
          eventType: 'test.event',
          payload: { a: [1] },
          metadata: { m: 1 },
          retryCount: 5,
          lastError: 'no phone',
          acknowledgedBy: ['A.one'],
          createdAt: new Date(row.createdAt),
          failedAt: new Date(row.processedAt!),
          previousLives: [],
        },
      ]);
    });

    it('is newest first, page by page, and says when there are no more', async () => {
      const ids = await subject.dead({}, {}, {}, {}, {});
      const [a, b, c, d, e] = ids;
      expect(await rest({ limit: 2 })).toEqual([[e, d], [c, b], [a]]);
      expect(await rest({ limit: 5 })).toEqual([[e, d, c, b, a]]);
      expect(await rest({ limit: 4 })).toEqual([[e, d, c, b], [a]]);
      expect(await rest({ limit: 100 })).toEqual([[e, d, c, b, a]]);
    });

    it('is one empty page when there are none', async () => {
      expect(await rest({})).toEqual([[]]);
    });

    it('keeps its filter from page to page', async () => {
      const x = { eventType: 'x' };
      const [a, , b, , c] = await subject.dead(x, {}, x, {}, x);
      expect(await rest({ limit: 2, eventType: 'x' })).toEqual([[c, b], [a]]);
    });

    it('finds text within the event type or the last error, in upper or lower case', async () => {
      const [a, b] = await subject.dead({ eventType: 'Quote.created' }, { eventType: 'other' });
      const c = await subject.claimed({ eventType: 'third' });
      await subject.settle(c, failed({ lastError: '카카오 API said "100%_\\ NO Quote"' }));
      for (const [matching, ids] of [
        ['quote', [c.id, a]],
        ['OTHER', [b]],
        ['카카오', [c.id]],
        ['100%_\\ no', [c.id]],
        ['%', [c.id]],
        ['_', [c.id]],
        ['nowhere', []],
      ] as const) {
        expect((await page({ matching, limit: 9 })).ids).toEqual(ids);
        expect(await subject.store.countDeadLetters({ matching })).toBe(ids.length);
      }
      const redrive = { limit: 9, firstDelayMs: 0, spacingMs: 0 };
      expect(await subject.store.redrive({ ...redrive, matching: 'OTHER' })).toEqual([b]);
      expect(await subject.store.discard({ limit: 9, matching: '카카오' })).toEqual([c.id]);
      expect((await page({ limit: 9 })).ids).toEqual([a]);
    });

    it('stays right while rows are removed and added: none twice, none skipped', async () => {
      const [a, b, c, d, e] = await subject.dead({}, {}, {}, {}, {});
      const first = await page();
      expect(first.ids).toEqual([e, d]);
      // The very row the next page counts from goes, and so does one ahead; a new one comes.
      await subject.store.redrive({ ids: [d!], limit: 1, firstDelayMs: 0, spacingMs: 0 });
      await subject.store.discard({ ids: [c!], limit: 1 });
      const [again] = await subject.claim();
      await subject.settle(again!, failed());
      expect(again!.id).toBe(d);
      const next = await rest({ limit: 2, after: first.next! });
      expect(next).toEqual([[b, a]]);
    });

    it('splits what was set aside in the same moment over pages, none twice, none skipped', async () => {
      const older = await subject.dead({});
      await subject.pass(1_000);
      const ids = await deadTogether(7);
      const pages = await rest({ limit: 3 });
      expect(pages.map((each) => each.length)).toEqual([3, 3, 2]);
      expect(pages.flat().toSorted()).toEqual([...ids, ...older].toSorted());
      expect(pages.flat().at(-1)).toBe(older[0]);
      expect(await rest({ limit: 3 })).toEqual(pages);
    });

    it.each([
      ['what never was a cursor', 'x'],
      ['an empty text', ''],
      ['JSON of another shape', Buffer.from('{"a":1}').toString('base64url')],
      ['a list of other things', Buffer.from('[1,2]').toString('base64url')],
      ['a time that is none', Buffer.from(JSON.stringify(['soon', 'x'])).toString('base64url')],
      ['SQL', "'; DROP TABLE victim; --"],
    ])('refuses %s as a cursor, with a word about it', async (_, after) => {
      for (const dead of [[], [{}]]) {
        await subject.dead(...dead);
        const refusing = subject.store.deadLetters({ limit: 2, after });
        await expect(refusing).rejects.toThrow(OutboxError);
        await expect(refusing).rejects.toThrow(/^after must be the "next" of an earlier page, got/);
      }
    });
  });
}
