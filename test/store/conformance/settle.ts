import { describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type { ClaimedEvent, Settlement } from '../../../src/store/outbox-store.js';
import {
  type RawRow,
  type Subject,
  LEASE_MS,
  MINUTE,
  failed,
  idsOf,
  leaseOf,
  retry,
} from './subject.js';

const OUTCOMES = {
  completed: { outcome: 'completed' },
  retry: retry({ retryCount: 3, lastError: 'because', acknowledgedBy: ['A.one'] }),
  failed: failed({ retryCount: 5, lastError: 'because', acknowledgedBy: ['A.one'] }),
  unheard: { outcome: 'unheard', delayMs: 3 * MINUTE },
  released: { outcome: 'released' },
} as const;
type Name = keyof typeof OUTCOMES;
const NAMES = Object.keys(OUTCOMES) as Name[];

export function describeSettle(subject: Subject): void {
  async function settled(
    event: ClaimedEvent,
    outcome: Parameters<Subject['settle']>[1],
  ): Promise<{ row: RawRow; from: number; to: number }> {
    const [from, to] = await subject.timed(async () => {
      expect(await subject.settle(event, outcome)).toEqual([event.id]);
    });
    return { row: await subject.row(event.id), from, to };
  }

  function expectBetween(time: number | null, from: number, to: number): void {
    expect(time).toBeGreaterThanOrEqual(from);
    expect(time).toBeLessThanOrEqual(to);
  }

  /** An event with a past: two failed attempts, one listener done, nobody heard it the last time. */
  async function withPast(): Promise<{ before: RawRow; claimed: ClaimedEvent }> {
    const first = await subject.claimed();
    await subject.settle(
      first,
      retry({ retryCount: 2, lastError: 'earlier', acknowledgedBy: ['Z.first'], delayMs: 0 }),
    );
    await subject.settle(await again(first.id), { outcome: 'unheard', delayMs: 0 });
    await subject.pass(MINUTE);
    const before = await subject.row(first.id);
    expect(before).toMatchObject({
      retryCount: 2,
      lastError: 'earlier',
      acknowledgedBy: ['Z.first'],
      unheardSince: expect.any(Number),
    });
    return { before, claimed: await again(first.id) };
  }

  async function again(id: string): Promise<ClaimedEvent> {
    const found = (await subject.claim()).find((event) => event.id === id);
    expect(found).toBeDefined();
    return found!;
  }

  describe('settle', () => {
    it('completed: done, since now; the last error stays for the record', async () => {
      const { before, claimed } = await withPast();
      const { row, from, to } = await settled(claimed, OUTCOMES.completed);
      expect(row).toEqual({
        ...before,
        status: 'COMPLETED',
        processedAt: expect.any(Number),
        unheardSince: null,
      });
      expectBetween(row.processedAt, from, to);
    });

    it('retry: PENDING again, with count, reason and listeners, due after the wait from now', async () => {
      const { before, claimed } = await withPast();
      const { row, from, to } = await settled(claimed, OUTCOMES.retry);
      expect(row).toEqual({
        ...before,
        retryCount: 3,
        lastError: 'because',
        acknowledgedBy: ['A.one'],
        scheduledAt: expect.any(Number),
        unheardSince: null,
      });
      expectBetween(row.scheduledAt, from + 2 * MINUTE, to + 2 * MINUTE);
    });

    it('failed: a dead letter since now, with count, reason and listeners', async () => {
      const { before, claimed } = await withPast();
      const { row, from, to } = await settled(claimed, OUTCOMES.failed);
      expect(row).toEqual({
        ...before,
        status: 'FAILED',
        retryCount: 5,
        lastError: 'because',
        acknowledgedBy: ['A.one'],
        processedAt: expect.any(Number),
        unheardSince: null,
      });
      expectBetween(row.processedAt, from, to);
    });

    it('unheard: PENDING for later, no attempt spent, and since when is noted once', async () => {
      const claimed = await subject.claimed();
      const before = await subject.row(claimed.id);
      const { row, from, to } = await settled(claimed, OUTCOMES.unheard);
      expect(row).toEqual({
        ...before,
        status: 'PENDING',
        leaseToken: null,
        leasedUntil: null,
        scheduledAt: expect.any(Number),
        unheardSince: expect.any(Number),
      });
      expectBetween(row.unheardSince, from, to);
      expectBetween(row.scheduledAt, from + 3 * MINUTE, to + 3 * MINUTE);

      await subject.pass(3 * MINUTE);
      const { unheardSince } = await subject.row(claimed.id);
      const later = await again(claimed.id);
      expect(later.unheardSince!.getTime()).toBe(Math.floor(unheardSince!));
      const second = await settled(later, OUTCOMES.unheard);
      expect(second.row.unheardSince).toBe(unheardSince);
    });

    it('released: as it was before the claim, to the last field', async () => {
      const { before, claimed } = await withPast();
      const { row } = await settled(claimed, OUTCOMES.released);
      expect(row).toEqual(before);
      expect(idsOf(await subject.claim())).toEqual([claimed.id]);
    });

    it('stores reasons and names of listeners as they are', async () => {
      const text = `it's "bad"\n{a,b} \\ $1 ? 견적 😀 NULL`;
      const names = [text, 'A.one', '', 'a,b', '{}', '"', '\\', 'NULL', 'null'];
      const claimed = await subject.claimed();
      const { row } = await settled(claimed, retry({ lastError: text, acknowledgedBy: names }));
      expect(row).toMatchObject({ lastError: text, acknowledgedBy: names });
      await subject.pass(2 * MINUTE);
      expect((await again(claimed.id)).acknowledgedBy).toEqual(names);
    });

    it('takes a wait of nothing, and a list of listeners that is empty again', async () => {
      const { claimed } = await withPast();
      const { row, from, to } = await settled(claimed, retry({ delayMs: 0, acknowledgedBy: [] }));
      expectBetween(row.scheduledAt, from, to);
      expect(row.acknowledgedBy).toEqual([]);
    });

    it('does each outcome of a batch to its own event', async () => {
      await subject.enqueueInOrder(NAMES.length);
      const events = await subject.claim();
      const settlements: Settlement[] = events.map((event, index) =>
        Object.assign(leaseOf(event), OUTCOMES[NAMES[index]!]),
      );
      const ids = await subject.store.settle(settlements);
      expect(ids.toSorted()).toEqual(idsOf(events).toSorted());
      const rows = await Promise.all(events.map(({ id }) => subject.row(id)));
      expect(rows.map(({ status, retryCount }) => [status, retryCount])).toEqual([
        ['COMPLETED', 0],
        ['PENDING', 3],
        ['FAILED', 5],
        ['PENDING', 0],
        ['PENDING', 0],
      ]);
    });

    it('a large batch', async () => {
      await subject.enqueue(...Array.from({ length: 1_000 }, () => ({})));
      const events = await subject.claim(1_000);
      const ids = await subject.settle(events, { outcome: 'completed' });
      expect(new Set(ids)).toEqual(new Set(idsOf(events)));
      expect(ids).toHaveLength(1_000);
    });

    it('nothing, when there is nothing to settle', async () => {
      expect(await subject.store.settle([])).toEqual([]);
    });
  });

  describe('nobody settles what is not theirs', () => {
    it.each(NAMES)('%s under a stranger’s token changes nothing and is no error', async (name) => {
      const claimed = await subject.claimed();
      const before = await subject.row(claimed.id);
      const stranger = { ...claimed, leaseToken: randomUUID() };
      expect(await subject.settle(stranger, OUTCOMES[name])).toEqual([]);
      expect(await subject.row(claimed.id)).toEqual(before);
    });

    it.each(NAMES)('%s a second time changes nothing', async (name) => {
      const claimed = await subject.claimed();
      await subject.settle(claimed, OUTCOMES[name]);
      const before = await subject.row(claimed.id);
      expect(await subject.settle(claimed, OUTCOMES.completed)).toEqual([]);
      expect(await subject.settle(claimed, OUTCOMES.failed)).toEqual([]);
      expect(await subject.row(claimed.id)).toEqual(before);
    });

    it('an event that does not exist is no error', async () => {
      const nobody = { ...(await subject.claimed()), id: randomUUID() };
      expect(await subject.settle(nobody, OUTCOMES.completed)).toEqual([]);
      expect(await subject.current.row(nobody.id)).toBeNull();
    });

    it('of a batch, exactly what was held is settled and answered', async () => {
      await subject.enqueueInOrder(5);
      const events = await subject.claim();
      const [held, strange, , lost, alsoHeld] = events;
      await subject.settle(lost!, OUTCOMES.released);
      const ids = await subject.settle(
        [
          held!,
          { ...strange!, leaseToken: randomUUID() },
          { ...held!, id: randomUUID() },
          lost!,
          alsoHeld!,
        ],
        OUTCOMES.completed,
      );
      expect(ids.toSorted()).toEqual([held!.id, alsoHeld!.id].toSorted());
      const rows = await Promise.all(events.map(({ id }) => subject.row(id)));
      expect(rows.map(({ status }) => status)).toEqual([
        'COMPLETED',
        'PROCESSING',
        'PROCESSING',
        'PENDING',
        'COMPLETED',
      ]);
    });

    /** A claims and stalls; the reaper counts it as a failure; B claims. */
    async function stalled(): Promise<{ a: ClaimedEvent; b: ClaimedEvent }> {
      const a = await subject.claimed();
      await subject.pass(LEASE_MS + 1);
      const [reaped] = await subject.reap();
      expect(reaped).toMatchObject({ id: a.id });
      // Between the reaper's claim and its verdict, too, the event is A's no more.
      expect(await subject.settle(a, OUTCOMES.completed)).toEqual([]);
      await subject.settle(reaped!, retry({ delayMs: 0 }));
      expect(await subject.settle(a, OUTCOMES.completed)).toEqual([]);
      return { a, b: await again(a.id) };
    }

    it('a late success changes nothing: the event follows whoever holds it now', async () => {
      const { a, b } = await stalled();
      expect(await subject.settle(a, OUTCOMES.completed)).toEqual([]);
      expect(await subject.settle(b, retry({ retryCount: 2, lastError: 'B failed' }))).toEqual([
        b.id,
      ]);
      expect(await subject.settle(a, OUTCOMES.completed)).toEqual([]);
      expect(await subject.row(b.id)).toMatchObject({
        status: 'PENDING',
        retryCount: 2,
        lastError: 'B failed',
      });
    });

    it('a late failure changes nothing: what another has completed stays done', async () => {
      const { a, b } = await stalled();
      expect(await subject.settle(b, OUTCOMES.completed)).toEqual([b.id]);
      const done = await subject.row(b.id);
      for (const name of NAMES) expect(await subject.settle(a, OUTCOMES[name])).toEqual([]);
      expect(await subject.row(b.id)).toEqual(done);
    });

    it('of two that settle at the same time under one token, one does', async () => {
      const claimed = await subject.claimed();
      const answers = await Promise.all([
        subject.settle(claimed, OUTCOMES.completed),
        subject.settle(claimed, OUTCOMES.failed),
        subject.settle(claimed, OUTCOMES.retry),
      ]);
      expect(answers.flat()).toEqual([claimed.id]);
    });
  });
}
