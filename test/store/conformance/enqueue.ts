import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { randomUUID } from 'node:crypto';
import { OutboxError } from '../../../src/event/outbox-error.js';
import type { OutboxPayload } from '../../../src/event/payload.js';
import { type Subject, MINUTE, idsOf, newEvent } from './subject.js';

export function describeEnqueue(subject: Subject): void {
  describe('enqueue', () => {
    it('writes a PENDING event, due at once, exactly as it was given', async () => {
      const event = newEvent({ payload: { a: [1] }, metadata: { traceId: 't' } });
      let stored: string[] = [];
      const [from, to] = await subject.timed(async () => {
        stored = await subject.store.enqueue([event]);
      });
      expect(stored).toEqual([event.id]);

      const row = await subject.row(event.id);
      expect(row).toEqual({
        id: event.id,
        eventType: 'test.event',
        payload: { a: [1] },
        metadata: { traceId: 't' },
        status: 'PENDING',
        retryCount: 0,
        lastError: null,
        acknowledgedBy: [],
        createdAt: expect.any(Number),
        scheduledAt: row.createdAt,
        processedAt: null,
        leaseToken: null,
        leasedUntil: null,
        unheardSince: null,
        previousLives: [],
      });
      expect(row.createdAt).toBeGreaterThanOrEqual(from);
      expect(row.createdAt).toBeLessThanOrEqual(to);
    });

    it('counts a delay from the store’s own clock', async () => {
      const [id] = await subject.enqueue({ delayMs: 90_500.5 });
      const row = await subject.row(id!);
      expect(row.scheduledAt - row.createdAt).toBeCloseTo(90_500.5, 1);
    });

    it.each(['2001-02-03T04:05:06.789Z', '2099-12-31T23:59:59.999Z'])(
      'keeps the moment it is given: %s',
      async (moment) => {
        const [id] = await subject.enqueue({ scheduledAt: new Date(moment) });
        expect((await subject.row(id!)).scheduledAt).toBe(Date.parse(moment));
      },
    );

    it('writes many at once, and nothing when there is nothing', async () => {
      const events = Array.from({ length: 1_000 }, (_, n) => newEvent({ payload: { n } }));
      const stored = await subject.store.enqueue(events);
      expect(new Set(stored)).toEqual(new Set(idsOf(events)));
      expect(stored).toHaveLength(1_000);
      expect((await subject.row(events[999]!.id)).payload).toEqual({ n: 999 });
      expect(await subject.store.enqueue([])).toEqual([]);
    });

    it('writes all of them or none', async () => {
      const good = newEvent();
      const bad = newEvent({ payload: { n: 1n } });
      await expect(subject.store.enqueue([good, bad])).rejects.toThrow(TypeError);
      expect(await subject.current.row(good.id)).toBeNull();
    });

    it('leaves an event that is there already as it is, and does not say that it wrote it', async () => {
      const first = newEvent({ payload: { first: true } });
      await subject.store.enqueue([first]);
      const before = await subject.row(first.id);
      const other = newEvent();
      const again = { ...newEvent({ id: first.id, payload: { first: false } }), delayMs: MINUTE };
      expect(await subject.store.enqueue([again, other])).toEqual([other.id]);
      expect(await subject.row(first.id)).toEqual(before);
    });

    it.each(['PROCESSING', 'COMPLETED', 'FAILED'] as const)(
      'does not bring back an event that is %s',
      async (status) => {
        const id = await subject.inState(status);
        const before = await subject.row(id);
        expect(await subject.store.enqueue([newEvent({ id })])).toEqual([]);
        expect(await subject.row(id)).toEqual(before);
      },
    );

    it('writes an id that comes twice in one call once, the first of the two', async () => {
      const [a, b] = [newEvent({ payload: { first: true } }), newEvent()];
      const twin = newEvent({ id: a.id, payload: { first: false } });
      expect((await subject.store.enqueue([a, b, twin])).toSorted()).toEqual(
        [a.id, b.id].toSorted(),
      );
      expect((await subject.row(a.id)).payload).toEqual({ first: true });
    });

    it('knows an id in upper case as the same', async () => {
      const id = randomUUID();
      await subject.enqueue({ id });
      expect(await subject.store.enqueue([newEvent({ id: id.toUpperCase() })])).toEqual([]);
      expect(await subject.store.find(id.toUpperCase())).toMatchObject({ id });
    });

    it('writes an id once when several callers write it at the same time', async () => {
      const event = newEvent();
      const answers = await Promise.all(
        Array.from({ length: 8 }, () => subject.store.enqueue([event])),
      );
      expect(answers.flat()).toEqual([event.id]);
    });
  });

  describe('a payload comes back as it was', () => {
    const text = [
      '10.5',
      '{"a":1}',
      '[1,2]',
      'null',
      'true',
      '',
      ' ',
      "it's",
      '"quoted"',
      'back\\slash \\u0041 \\n',
      'line\nbreak\ttab\r\u2028',
      '? ?? $1 $$ :name %s {0}',
      '{1,2,NULL}',
      '견적 요청 😀 é e\u0301 \u{10FFFF}',
      '2026-01-01T00:00:00.000Z',
      '<img src=x onerror=alert(1)>',
    ];

    it.each<[string, OutboxPayload]>([
      ['an empty object', {}],
      ['texts of every kind', { text }],
      ['keys of every kind', Object.fromEntries(text.map((key, index) => [key, index]))],
      ['lists in lists, empty ones too', { a: [], b: [[]], c: [[1, [2, []]], {}], d: [{ e: [] }] }],
      [
        'numbers',
        { n: [0, -1, 1.5, 1e21, 1e-7, 5e-324, Number.MAX_SAFE_INTEGER, 1.7976931348623157e308] },
      ],
      ['null and booleans', { a: null, b: [null, true, false], c: { d: null } }],
      ['100 levels', nested(100)],
      ['500 levels', nested(500)],
      ['a megabyte', { text: '한'.repeat(350_000) }],
      ['many keys', Object.fromEntries(Array.from({ length: 5_000 }, (_, n) => [`k${n}`, n]))],
      ['an own key __proto__', JSON.parse('{"__proto__":{"isAdmin":true},"a":1}') as OutboxPayload],
    ])('%s', async (_, payload) => {
      const metadata = { copy: payload };
      const [id] = await subject.enqueue({ payload, metadata });
      const [claimed] = await subject.claim();
      expect(claimed).toMatchObject({ id });
      expect(claimed!.payload).toEqual(payload);
      expect(claimed!.metadata).toEqual(metadata);
      expect(Object.hasOwn(claimed!.payload, '__proto__')).toBe(
        Object.hasOwn(payload, '__proto__'),
      );
      expect((await subject.store.find(id!))!.payload).toEqual(payload);
    });

    it('any JSON object', async () => {
      const payloads = fc.dictionary(
        fc.string({ unit: 'grapheme' }),
        fc.jsonValue({ stringUnit: 'binary' }),
      );
      const storable = payloads.filter((payload) => !JSON.stringify(payload).includes('\\u0000'));
      await fc.assert(
        fc.asyncProperty(fc.array(storable, { minLength: 1 }), async (batch) => {
          const ids = await subject.enqueue(...batch.map((payload) => ({ payload })));
          for (const [index, id] of ids.entries()) {
            const { payload } = (await subject.store.find(id))!;
            // -0 is no JSON.
            expect(payload).toEqual(JSON.parse(JSON.stringify(batch[index])));
          }
        }),
        { numRuns: 30 },
      );
    });

    it('an event type of 255 characters of two code units, and one with quotes', async () => {
      for (const eventType of ['😀'.repeat(255), `it's "a"; DROP TABLE victim; --\\`]) {
        const [id] = await subject.enqueue({ eventType });
        expect((await subject.store.find(id!))!.eventType).toBe(eventType);
      }
    });

    it('and is a copy: nobody shares an object with the store', async () => {
      const payload = { list: [1] };
      const [id] = await subject.enqueue({ payload });
      payload.list.push(2);
      const [claimed] = await subject.claim();
      (claimed!.payload['list'] as number[]).push(3);
      expect((await subject.store.find(id!))!.payload).toEqual({ list: [1] });
    });
  });

  describe('enqueue inside a caller’s transaction', () => {
    it('is part of it, or is refused with a word about it', async () => {
      if (subject.current.begin === undefined) {
        const refusing = subject.store.enqueue([newEvent()], { query: async () => ({ rows: [] }) });
        await expect(refusing).rejects.toThrow(OutboxError);
        await expect(refusing).rejects.toThrow(/^tx cannot be used with/);
        expect(await subject.claim()).toEqual([]);
        return;
      }
      const tx = await subject.current.begin();
      const event = newEvent();
      expect(await subject.store.enqueue([event], tx.executor)).toEqual([event.id]);
      expect(await subject.store.enqueue([event], tx.executor)).toEqual([]);
      expect(await subject.store.find(event.id)).toBeNull();
      await tx.commit();
      expect(await subject.store.find(event.id)).toMatchObject({ status: 'PENDING' });
    });

    it('goes when the transaction is rolled back, and leaves no trace that stalls anything', async () => {
      if (subject.current.begin === undefined) return expectRefusal(subject);
      const tx = await subject.current.begin();
      const event = newEvent();
      await subject.store.enqueue([event], tx.executor);
      await tx.rollback();
      expect(await subject.store.find(event.id)).toBeNull();
      const [later] = await subject.enqueue({});
      expect(idsOf(await subject.claim())).toEqual([later]);
    });

    it('is found however late it commits, also after younger events are done', async () => {
      if (subject.current.begin === undefined) return expectRefusal(subject);
      const tx = await subject.current.begin();
      const early = newEvent();
      await subject.store.enqueue([early], tx.executor);
      const young = await subject.claimed();
      expect(young.id).not.toBe(early.id);
      await subject.settle(young, { outcome: 'completed' });
      await subject.pass(MINUTE);
      expect(await subject.claim()).toEqual([]);
      await tx.commit();
      expect(idsOf(await subject.claim())).toEqual([early.id]);
    });
  });
}

async function expectRefusal(subject: Subject): Promise<void> {
  const refusing = subject.store.enqueue([newEvent()], { query: async () => ({ rows: [] }) });
  await expect(refusing).rejects.toThrow(/^tx cannot be used with/);
}

function nested(depth: number): OutboxPayload {
  let value: OutboxPayload = { deepest: true };
  for (let level = 1; level < depth; level++) value = { a: value };
  return value;
}
