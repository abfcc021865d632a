import { describe, expect, it } from '@jest/globals';
import { OutboxError } from '../../src/event/outbox-error.js';
import {
  OutboxEvent,
  type OutboxEventProps,
  type OutboxEventStatus,
} from '../../src/event/outbox-event.js';
import { DEFAULT_RETRY_POLICY } from '../../src/event/retry-policy.js';

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const NOW = new Date('2026-03-01T12:00:00.000Z');

function stored(props: Partial<OutboxEventProps> = {}): OutboxEvent {
  return OutboxEvent.reconstitute({
    id: 'e1',
    eventType: 'test.event',
    payload: { x: 1 },
    createdAt: NOW,
    scheduledAt: NOW,
    ...props,
  });
}

/** What the entity says of itself, all of it. */
function snapshot(event: OutboxEvent) {
  return {
    id: event.getId(),
    eventType: event.getEventType(),
    payload: event.getPayload(),
    metadata: event.getMetadata(),
    status: event.getStatus(),
    retryCount: event.getRetryCount(),
    lastError: event.getLastError(),
    scheduledAt: event.getScheduledAt(),
    processedAt: event.getProcessedAt(),
    createdAt: event.getCreatedAt(),
    acknowledgedBy: event.getAcknowledgedBy(),
    unheardSince: event.getUnheardSince(),
    delayMs: event.getDelayMs(),
  };
}

describe('the two rules of failing', () => {
  it('an event with retries left stays PENDING', () => {
    const event = OutboxEvent.create({ eventType: 'test.event', payload: { x: 1 } });
    event.markAsFailed('transient error');
    expect(event.getStatus()).toBe('PENDING');
    expect(event.getRetryCount()).toBe(1);
  });

  it('only when its retries are exhausted does an event become FAILED, a dead letter', () => {
    const event = OutboxEvent.reconstitute({
      id: 'e1',
      eventType: 'test.event',
      payload: { x: 1 },
      retryCount: 4,
      status: 'PENDING',
    });
    event.markAsFailed('final error');
    expect(event.getStatus()).toBe('FAILED');
    expect(event.getRetryCount()).toBe(5);
  });
});

describe('a new event', () => {
  it('is PENDING, never failed, and its times are left to the database', () => {
    const event = OutboxEvent.create({
      eventType: 'quote_request.created',
      payload: { quoteRequestId: 7 },
      metadata: { traceId: 't' },
    });
    expect(snapshot(event)).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/),
      eventType: 'quote_request.created',
      payload: { quoteRequestId: 7 },
      metadata: { traceId: 't' },
      status: 'PENDING',
      retryCount: 0,
      lastError: null,
      scheduledAt: null,
      processedAt: null,
      createdAt: null,
      acknowledgedBy: [],
      unheardSince: null,
      delayMs: null,
    });
  });

  it('keeps the id it is given, and two without one differ', () => {
    const create = (id?: string) =>
      OutboxEvent.create({ eventType: 'a', payload: {}, ...(id !== undefined && { id }) }).getId();
    expect(create('given')).toBe('given');
    expect(create()).not.toBe(create());
  });

  it('has empty metadata if none is given', () => {
    expect(OutboxEvent.create({ eventType: 'a', payload: {} }).getMetadata()).toEqual({});
  });
});

describe('a reconstituted event', () => {
  it('says exactly what was stored', () => {
    const props = {
      id: 'e1',
      eventType: 'a',
      payload: { x: [1, { y: null }] },
      metadata: { m: 1 },
      status: 'FAILED',
      retryCount: 5,
      lastError: 'no',
      scheduledAt: new Date(1_000),
      processedAt: new Date(2_000),
      createdAt: new Date(3_000),
      acknowledgedBy: ['A.one'],
      unheardSince: new Date(4_000),
    } as const satisfies OutboxEventProps;
    expect(snapshot(OutboxEvent.reconstitute(props))).toEqual({ ...props, delayMs: null });
  });

  it('takes undefined and null from a driver for "not given"', () => {
    const row = { id: 'e1', eventType: 'a', payload: {}, status: undefined, metadata: null };
    const event = OutboxEvent.reconstitute({
      ...row,
      retryCount: undefined,
      acknowledgedBy: null,
    } as unknown as OutboxEventProps);
    const { status, metadata, retryCount, acknowledgedBy } = snapshot(event);
    expect({ status, metadata, retryCount, acknowledgedBy }).toEqual({
      status: 'PENDING',
      metadata: {},
      retryCount: 0,
      acknowledgedBy: [],
    });
  });
});

describe('failing', () => {
  it('waits 2, 4, 8 and 16 minutes, and the 5th failure is the last', () => {
    const event = stored();
    const waits = [];
    for (let failure = 1; failure <= 5; failure++) {
      const due = event.getScheduledAt()!;
      event.markAsFailed(`failure ${failure}`, { now: due });
      expect(event.getRetryCount()).toBe(failure);
      waits.push([event.getStatus(), (event.getScheduledAt()!.getTime() - due.getTime()) / MINUTE]);
    }
    expect(waits).toEqual([
      ['PENDING', 2],
      ['PENDING', 4],
      ['PENDING', 8],
      ['PENDING', 16],
      ['FAILED', 0],
    ]);
  });

  it('counts the wait from the moment it is given, and answers it in milliseconds', () => {
    const event = stored({ scheduledAt: new Date(0) });
    event.markAsFailed('no', { now: NOW });
    expect(event.getScheduledAt()).toEqual(new Date(NOW.getTime() + 2 * MINUTE));
    expect(event.getDelayMs()).toBe(2 * MINUTE);
    expect(event.getProcessedAt()).toBeNull();
  });

  it.each<[string, Partial<OutboxEventProps>, number | null]>([
    ['when it was due', { createdAt: new Date(1), scheduledAt: new Date(5) }, 5],
    ['when it was stored', { createdAt: new Date(9), scheduledAt: new Date(5) }, 9],
    ['the one it knows', { createdAt: null, scheduledAt: new Date(5) }, 5],
    ['the other it knows', { createdAt: new Date(9), scheduledAt: null }, 9],
    ['nothing', { createdAt: null, scheduledAt: null }, null],
  ])('without a moment counts from the latest it knows: %s', (_, times, from) => {
    const event = stored(times);
    event.markAsFailed('no');
    expect(event.getScheduledAt()).toEqual(
      from === null ? null : new Date(from + event.getDelayMs()!),
    );
    expect(event.getDelayMs()).toBe(2 * MINUTE);
  });

  it('keeps the last error, and when the event was set aside', () => {
    const event = stored({ retryCount: 4, lastError: 'the 4th' });
    event.markAsFailed('the 5th', { now: NOW });
    expect(event.getLastError()).toBe('the 5th');
    expect(event.getProcessedAt()).toEqual(NOW);
    expect(event.getDelayMs()).toBeNull();
  });

  it('with one attempt allowed is a dead letter at once', () => {
    const event = stored();
    event.markAsFailed('no', { policy: { ...DEFAULT_RETRY_POLICY, maxRetries: 1 }, now: NOW });
    expect(event.getStatus()).toBe('FAILED');
    expect(event.getRetryCount()).toBe(1);
  });

  it('with 40 attempts allowed waits no longer than the cap, and overflows nowhere', () => {
    const policy = { ...DEFAULT_RETRY_POLICY, maxRetries: 40 };
    const event = stored();
    const waits: number[] = [];
    while (event.getStatus() !== 'FAILED') {
      const due = event.getScheduledAt()!;
      event.markAsFailed('no', { policy, now: due });
      if (event.getStatus() === 'PENDING') waits.push(event.getDelayMs()!);
      expect(event.getScheduledAt()!.getTime()).not.toBeNaN();
    }
    expect(event.getRetryCount()).toBe(40);
    expect(waits).toHaveLength(39);
    expect(waits.slice(0, 10)).toEqual([2, 4, 8, 16, 32, 64, 128, 256, 512, 1024].map(minutes));
    expect(new Set(waits.slice(10))).toEqual(new Set([DAY]));
  });

  it('that no retry can help is a dead letter at once, with the attempts it has spent', () => {
    const event = stored({ retryCount: 1 });
    event.markAsFailed('no such number', { retryable: false, now: NOW });
    expect(event.getStatus()).toBe('FAILED');
    expect(event.getRetryCount()).toBe(2);
    expect(event.getProcessedAt()).toEqual(NOW);
  });

  it('ends a time without listeners: somebody did listen', () => {
    const event = stored({ unheardSince: NOW });
    event.markAsFailed('no', { now: NOW });
    expect(event.getUnheardSince()).toBeNull();
  });

  function minutes(count: number): number {
    return count * MINUTE;
  }
});

describe('isRetryable', () => {
  it.each([
    [0, undefined, true],
    [4, undefined, true],
    [5, undefined, false],
    [6, undefined, false],
    [0, 1, true],
    [1, 1, false],
    [39, 40, true],
    [40, 40, false],
  ])('after %i failures with %p allowed answers %p', (retryCount, maxRetries, answer) => {
    expect(stored({ retryCount }).isRetryable(maxRetries)).toBe(answer);
  });
});

describe('completing', () => {
  it('says when, and forgets that nobody listened for a while', () => {
    const event = stored({ status: 'PROCESSING', retryCount: 2, unheardSince: NOW });
    event.markAsCompleted(NOW);
    expect(event.getStatus()).toBe('COMPLETED');
    expect(event.getProcessedAt()).toEqual(NOW);
    expect(event.getUnheardSince()).toBeNull();
    expect(event.getRetryCount()).toBe(2);
  });

  it('without a moment takes the latest the event knows of', () => {
    const event = stored({ scheduledAt: new Date(5), createdAt: new Date(9) });
    event.markAsCompleted();
    expect(event.getProcessedAt()).toEqual(new Date(9));
  });
});

describe('going unheard', () => {
  const wait = { retryInMs: MINUTE, graceMs: DAY };

  it('puts the event back for later without spending an attempt', () => {
    const event = stored({ status: 'PROCESSING', retryCount: 3 });
    event.markAsUnheard(NOW, wait);
    expect(snapshot(event)).toMatchObject({
      status: 'PENDING',
      retryCount: 3,
      lastError: null,
      scheduledAt: new Date(NOW.getTime() + MINUTE),
      unheardSince: NOW,
      delayMs: MINUTE,
    });
  });

  it('counts the grace from the first time, and ends it with a reason that says so', () => {
    const event = stored();
    event.markAsUnheard(NOW, wait);
    event.markAsUnheard(new Date(NOW.getTime() + DAY - 1), wait);
    expect(event.getStatus()).toBe('PENDING');
    expect(event.getUnheardSince()).toEqual(NOW);

    const end = new Date(NOW.getTime() + DAY);
    event.markAsUnheard(end, wait);
    expect(snapshot(event)).toMatchObject({
      status: 'FAILED',
      retryCount: 0,
      lastError: "nobody has listened to 'test.event' since 2026-03-01T12:00:00.000Z",
      processedAt: end,
      delayMs: null,
    });
  });

  it('starts the grace anew once somebody has listened in between', () => {
    const event = stored();
    event.markAsUnheard(NOW, wait);
    event.markAsFailed('somebody failed', { now: NOW });
    const later = new Date(NOW.getTime() + 2 * DAY);
    event.markAsUnheard(later, wait);
    expect(event.getStatus()).toBe('PENDING');
    expect(event.getUnheardSince()).toEqual(later);
  });

  it('with no grace is a dead letter at once', () => {
    const event = stored();
    event.markAsUnheard(NOW, { retryInMs: MINUTE, graceMs: 0 });
    expect(event.getStatus()).toBe('FAILED');
  });
});

describe('redriving', () => {
  it('gives a dead letter all its attempts again, and keeps what is known of its first life', () => {
    const event = stored({ acknowledgedBy: ['A.one'], retryCount: 4 });
    event.markAsFailed('final', { now: NOW });
    const later = new Date(NOW.getTime() + DAY);
    event.redrive(later);
    expect(snapshot(event)).toMatchObject({
      status: 'PENDING',
      retryCount: 0,
      lastError: 'final',
      scheduledAt: later,
      processedAt: null,
      unheardSince: null,
      acknowledgedBy: ['A.one'],
      delayMs: null,
    });
    event.markAsFailed('again', { now: later });
    expect(event.getStatus()).toBe('PENDING');
    expect(event.getRetryCount()).toBe(1);
    expect(event.getDelayMs()).toBe(2 * MINUTE);
  });

  it('starts the grace for a listener anew', () => {
    const event = stored();
    event.markAsUnheard(NOW, { retryInMs: MINUTE, graceMs: 0 });
    event.redrive(NOW);
    expect(event.getUnheardSince()).toBeNull();
  });
});

describe('acknowledging', () => {
  it('adds listeners once, in the order they succeeded, and leaves the stored list alone', () => {
    const before = ['A.one'];
    const event = stored({ acknowledgedBy: before });
    event.acknowledge(['B.two', 'A.one']);
    event.acknowledge(['B.two', 'C.three']);
    expect(event.getAcknowledgedBy()).toEqual(['A.one', 'B.two', 'C.three']);
    expect(before).toEqual(['A.one']);
  });
});

describe('a step that the state does not allow', () => {
  const STEPS: Record<string, { allowed: OutboxEventStatus[]; run: (event: OutboxEvent) => void }> =
    {
      markAsProcessing: { allowed: ['PENDING'], run: (event) => event.markAsProcessing() },
      markAsCompleted: {
        allowed: ['PENDING', 'PROCESSING'],
        run: (event) => event.markAsCompleted(NOW),
      },
      markAsFailed: {
        allowed: ['PENDING', 'PROCESSING'],
        run: (event) => event.markAsFailed('no', { now: NOW }),
      },
      markAsUnheard: {
        allowed: ['PENDING', 'PROCESSING'],
        run: (event) => event.markAsUnheard(NOW, { retryInMs: 1, graceMs: 1 }),
      },
      redrive: { allowed: ['FAILED'], run: (event) => event.redrive(NOW) },
    };
  const STATES: OutboxEventStatus[] = ['PENDING', 'PROCESSING', 'COMPLETED', 'FAILED'];
  const cases = Object.entries(STEPS).flatMap(([step, { allowed }]) =>
    STATES.map((status) => [step, status, allowed.includes(status)] as const),
  );

  it.each(cases)('%s on a %s event: allowed is %p', (step, status, allowed) => {
    const event = stored({ status, retryCount: 2, acknowledgedBy: ['A.one'], unheardSince: NOW });
    const before = snapshot(event);
    const run = () => STEPS[step]!.run(event);
    if (allowed) {
      run();
      expect(snapshot(event)).not.toEqual(before);
      return;
    }
    expect(run).toThrow(OutboxError);
    expect(run).toThrow(new RegExp(`^event e1 is ${status} and cannot .*: it must be `));
    expect(run).toThrow(expect.objectContaining({ code: 'INVALID_TRANSITION' }));
    expect(snapshot(event)).toEqual(before);
  });

  it('a wait that was decided is not repeated by the next transition', () => {
    const event = stored();
    event.markAsFailed('no', { now: NOW });
    event.markAsProcessing();
    expect(event.getDelayMs()).toBeNull();
    event.markAsUnheard(NOW, { retryInMs: 7, graceMs: DAY });
    expect(event.getDelayMs()).toBe(7);
    event.markAsCompleted(NOW);
    expect(event.getDelayMs()).toBeNull();
  });
});
