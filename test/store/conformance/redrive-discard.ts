import { describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type { DeadLetterFilter, RedriveRequest } from '../../../src/store/outbox-store.js';
import { type Subject, MINUTE, failed, idsOf, retry } from './subject.js';

export function describeRedriveAndDiscard(subject: Subject): void {
  function redrive(request?: Partial<RedriveRequest>): Promise<string[]> {
    return subject.store.redrive({ limit: 100, firstDelayMs: 0, spacingMs: 0, ...request });
  }

  function discard(request?: DeadLetterFilter & { limit?: number }): Promise<string[]> {
    return subject.store.discard({ limit: 100, ...request });
  }

  describe('redrive', () => {
    it('gives a dead letter a second life, due at once, and keeps what the first came to', async () => {
      const claimed = await subject.claimed({ payload: { a: 1 } });
      await subject.settle(
        claimed,
        failed({ retryCount: 5, lastError: 'no phone', acknowledgedBy: ['A.one'] }),
      );
      await subject.pass(MINUTE);
      const before = await subject.row(claimed.id);
      const [from, to] = await subject.timed(async () => {
        expect(await redrive()).toEqual([claimed.id]);
      });
      const row = await subject.row(claimed.id);
      expect(row).toEqual({
        ...before,
        status: 'PENDING',
        retryCount: 0,
        scheduledAt: expect.any(Number),
        processedAt: null,
        previousLives: [
          {
            retryCount: 5,
            lastError: 'no phone',
            failedAt: expect.any(String),
            redrivenAt: expect.any(String),
          },
        ],
      });
      expect(row.acknowledgedBy).toEqual(['A.one']);
      expect(row.scheduledAt).toBeGreaterThanOrEqual(from);
      expect(row.scheduledAt).toBeLessThanOrEqual(to);
      const [life] = row.previousLives;
      expect(Date.parse(life!.failedAt!)).toBe(Math.floor(before.processedAt!));
      expect(Date.parse(life!.redrivenAt)).toBe(Math.floor(row.scheduledAt));
      expect((await subject.store.find(claimed.id))!.previousLives).toEqual(row.previousLives);
    });

    it('with all its attempts: it is claimed as new, and fails as new', async () => {
      const [id] = await subject.dead({});
      await redrive();
      const [again] = await subject.claim();
      expect(again).toMatchObject({ id, retryCount: 0, unheardSince: null });
      await subject.settle(again!, retry({ retryCount: 1 }));
      expect(await subject.row(id!)).toMatchObject({ status: 'PENDING', retryCount: 1 });
    });

    it('keeps every life, oldest first, the last twenty', async () => {
      const [id] = await subject.enqueue({});
      for (let life = 1; life <= 22; life++) {
        const [claimed] = await subject.claim();
        await subject.settle(claimed!, failed({ retryCount: life, lastError: `life ${life}` }));
        expect(await redrive()).toEqual([id]);
        const { previousLives } = await subject.row(id!);
        expect(previousLives.at(-1)).toMatchObject({ retryCount: life, lastError: `life ${life}` });
        expect(previousLives).toHaveLength(Math.min(life, 20));
      }
      const { previousLives } = await subject.row(id!);
      expect(previousLives.map(({ retryCount }) => retryCount)).toEqual(
        Array.from({ length: 20 }, (_, index) => index + 3),
      );
    });

    it('spaces them, the longest dead first, so that a large redrive is no flood', async () => {
      const ids = await subject.dead({}, {}, {}, {});
      expect(new Set(await redrive({ limit: 3, firstDelayMs: 5_000, spacingMs: 250 }))).toEqual(
        new Set(ids.slice(0, 3)),
      );
      const rows = await Promise.all(ids.map((id) => subject.row(id)));
      const start = rows[0]!.scheduledAt;
      expect(rows.slice(0, 3).map((row) => Math.round(row.scheduledAt - start))).toEqual([
        0, 250, 500,
      ]);
      const redrivenAt = Date.parse(rows[0]!.previousLives[0]!.redrivenAt);
      expect(Math.floor(start - 5_000)).toBe(redrivenAt);
      expect(rows[3]).toMatchObject({ status: 'FAILED' });
    });

    it('never redrives an event twice for two callers at the same time', async () => {
      const ids = await subject.dead(...Array.from({ length: 20 }, () => ({})));
      const answers = await Promise.all([
        redrive({ limit: 10 }),
        redrive({ limit: 10 }),
        redrive({ limit: 10 }),
      ]);
      const first = answers.flat();
      expect(new Set(first).size).toBe(first.length);
      const rest = await redrive();
      expect(new Set([...first, ...rest])).toEqual(new Set(ids));
      expect(first.length + rest.length).toBe(20);
      for (const id of ids) expect((await subject.row(id)).previousLives).toHaveLength(1);
    });
  });

  describe('discard', () => {
    it('deletes dead letters for good, the longest dead first', async () => {
      const ids = await subject.dead({}, {}, {});
      expect((await discard({ limit: 2 })).toSorted()).toEqual(ids.slice(0, 2).toSorted());
      expect(await subject.current.row(ids[0]!)).toBeNull();
      expect(await subject.current.row(ids[1]!)).toBeNull();
      expect(await subject.row(ids[2]!)).toMatchObject({ status: 'FAILED' });
    });
  });

  describe.each([
    ['redrive', redrive],
    ['discard', discard],
    [
      'the list of dead letters',
      async (filter?: DeadLetterFilter) =>
        idsOf((await subject.store.deadLetters({ ...filter, limit: 100 })).items),
    ],
    [
      'the count of dead letters',
      async (filter?: DeadLetterFilter) => {
        const { items } = await subject.store.deadLetters({ ...filter, limit: 100 });
        expect(await subject.store.countDeadLetters(filter ?? {})).toBe(items.length);
        return idsOf(items);
      },
    ],
  ] as const)('the filter of %s', (_, verb) => {
    const sorted = async (filter?: DeadLetterFilter): Promise<string[]> =>
      (await verb(filter)).toSorted();

    it.each(['PENDING', 'PROCESSING', 'COMPLETED'] as const)(
      'never means what is %s',
      async (status) => {
        const id = await subject.inState(status);
        const before = await subject.row(id);
        expect(await verb()).toEqual([]);
        expect(await verb({ ids: [id] })).toEqual([]);
        expect(await subject.row(id)).toEqual(before);
      },
    );

    it('without a field means all', async () => {
      const ids = await subject.dead({}, { eventType: 'other' });
      expect(await sorted()).toEqual(ids.toSorted());
    });

    it('by id means these, whatever their case; what does not exist is passed over', async () => {
      const [a, , c] = await subject.dead({}, {}, {});
      const ids = [a!, c!.toUpperCase(), randomUUID()];
      expect(await sorted({ ids })).toEqual([a!, c!].toSorted());
    });

    it('by an empty list of ids means none', async () => {
      await subject.dead({}, {});
      expect(await verb({ ids: [] })).toEqual([]);
    });

    it('by type means exactly that type', async () => {
      const [, b] = await subject.dead({ eventType: 'a' }, { eventType: 'b' }, { eventType: 'bb' });
      expect(await verb({ eventType: 'b' })).toEqual([b]);
    });

    it('by time means at or after the one, and before the other', async () => {
      const ids = await subject.dead({}, {}, {}, {});
      const times = await Promise.all(ids.map(async (id) => (await subject.row(id)).processedAt!));
      // A store may know the time to the microsecond, a Date to the millisecond.
      const [, second, third, fourth] = times.map((time) => new Date(time));
      expect(await sorted({ failedAfter: second!, failedBefore: fourth! })).toEqual(
        ids.slice(1, 3).toSorted(),
      );
      expect(third!.getTime()).toBeGreaterThan(second!.getTime());
    });

    it('by an empty stretch of time means none', async () => {
      const [id] = await subject.dead({});
      const time = new Date((await subject.row(id!)).processedAt!);
      expect(await verb({ failedAfter: time, failedBefore: time })).toEqual([]);
    });

    it('by several fields means all of them together', async () => {
      const [a, b, c] = await subject.dead(
        { eventType: 'x' },
        { eventType: 'x' },
        { eventType: 'y' },
      );
      expect(await sorted({ ids: [b!, c!], eventType: 'x' })).toEqual([b]);
      expect((await subject.row(a!)).status).toBe('FAILED');
    });
  });
}
