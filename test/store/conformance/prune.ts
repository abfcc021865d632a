import { describe, expect, it } from '@jest/globals';
import { type Subject, MINUTE } from './subject.js';

const DAY = 24 * 60 * MINUTE;

export function describePrune(subject: Subject): void {
  describe('prune', () => {
    it.each(['COMPLETED', 'FAILED'] as const)(
      'deletes what has been %s for longer than told, and counts it',
      async (status) => {
        const old = await subject.inState(status);
        await subject.pass(DAY);
        const young = await subject.inState(status);
        await subject.pass(MINUTE);
        const prune = (olderThanMs: number) =>
          subject.store.prune({ status, olderThanMs, limit: 100 });
        expect(await prune(DAY + 2 * MINUTE)).toBe(0);
        expect(await prune(DAY)).toBe(1);
        expect(await subject.current.row(old)).toBeNull();
        expect(await subject.row(young)).toMatchObject({ status });
      },
    );

    it('counts from when it was finished, not from when it was stored', async () => {
      const [id] = await subject.enqueue({});
      await subject.pass(100 * DAY);
      const [claimed] = await subject.claim();
      await subject.settle(claimed!, { outcome: 'completed' });
      expect(await subject.store.prune({ status: 'COMPLETED', olderThanMs: DAY, limit: 9 })).toBe(
        0,
      );
      expect(await subject.row(id!)).toMatchObject({ status: 'COMPLETED' });
    });

    it.each(['PENDING', 'PROCESSING'] as const)(
      'never deletes what is %s, whatever its count and age',
      async (status) => {
        const id = await subject.inState(status);
        await subject.pass(10_000 * DAY);
        const before = await subject.row(id);
        expect(before.retryCount).toBe(9);
        for (const finished of ['COMPLETED', 'FAILED'] as const)
          expect(await subject.store.prune({ status: finished, olderThanMs: 0, limit: 100 })).toBe(
            0,
          );
        expect(await subject.row(id)).toEqual(before);
      },
    );

    it('of one finished status leaves the other alone', async () => {
      const completed = await subject.inState('COMPLETED');
      const failed = await subject.inState('FAILED');
      await subject.pass(DAY);
      expect(await subject.store.prune({ status: 'FAILED', olderThanMs: 0, limit: 9 })).toBe(1);
      expect(await subject.current.row(failed)).toBeNull();
      expect(await subject.row(completed)).toMatchObject({ status: 'COMPLETED' });
      expect(await subject.store.prune({ status: 'COMPLETED', olderThanMs: 0, limit: 9 })).toBe(1);
      expect(await subject.current.row(completed)).toBeNull();
    });

    it('of a status that is not finished deletes nothing, even if somebody asks', async () => {
      const id = await subject.inState('PENDING');
      await subject.pass(DAY);
      const status = 'PENDING' as 'FAILED';
      expect(await subject.store.prune({ status, olderThanMs: 0, limit: 9 })).toBe(0);
      expect(await subject.row(id)).toMatchObject({ status: 'PENDING' });
    });

    it('does not delete a dead letter that was redriven', async () => {
      const [id] = await subject.dead({});
      await subject.pass(DAY);
      await subject.store.redrive({ limit: 1, firstDelayMs: 0, spacingMs: 0 });
      expect(await subject.store.prune({ status: 'FAILED', olderThanMs: 0, limit: 9 })).toBe(0);
      expect(await subject.row(id!)).toMatchObject({ status: 'PENDING' });
    });

    it('takes the oldest first, no more than told', async () => {
      // Stored first, finished last.
      const late = await subject.claimed();
      const first = await subject.completed();
      await subject.pass(1_000);
      const second = await subject.completed();
      await subject.pass(1_000);
      await subject.settle(late, { outcome: 'completed' });
      await subject.pass(1_000);
      const prune = () => subject.store.prune({ status: 'COMPLETED', olderThanMs: 0, limit: 2 });
      expect(await prune()).toBe(2);
      expect(await subject.current.row(first)).toBeNull();
      expect(await subject.current.row(second)).toBeNull();
      expect(await subject.row(late.id)).toMatchObject({ status: 'COMPLETED' });
      expect(await prune()).toBe(1);
      expect(await prune()).toBe(0);
    });
  });
}
