import { describe, it } from '@jest/globals';
import fc from 'fast-check';
// Not jest's expect: some hundred thousand comparisons are made here.
import assert from 'node:assert/strict';
import { OutboxError } from '../../src/event/outbox-error.js';
import { OutboxEvent, type OutboxEventStatus } from '../../src/event/outbox-event.js';
import type { RetryPolicy } from '../../src/event/retry-policy.js';

/** What may be done to an event. Times pass between steps; they never go back. */
type Step =
  | { verb: 'markAsProcessing' | 'markAsCompleted' | 'redrive' }
  | { verb: 'markAsFailed'; retryable: boolean; random: number }
  | { verb: 'markAsUnheard'; graceMs: number }
  | { verb: 'acknowledge'; listeners: string[] };

const STATES: readonly OutboxEventStatus[] = ['PENDING', 'PROCESSING', 'COMPLETED', 'FAILED'];

const ALLOWED: Record<Step['verb'], readonly OutboxEventStatus[]> = {
  markAsProcessing: ['PENDING'],
  markAsCompleted: ['PENDING', 'PROCESSING'],
  markAsFailed: ['PENDING', 'PROCESSING'],
  markAsUnheard: ['PENDING', 'PROCESSING'],
  acknowledge: STATES,
  redrive: ['FAILED'],
};

const RETRY_IN_MS = 60_000;
const unitInterval = fc.double({ min: 0, max: 1, noNaN: true });

const steps: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ verb: fc.constant('markAsProcessing' as const) }),
  { arbitrary: fc.record({ verb: fc.constant('markAsCompleted' as const) }), weight: 1 },
  {
    weight: 5,
    arbitrary: fc.record({
      verb: fc.constant('markAsFailed' as const),
      retryable: fc.oneof({ arbitrary: fc.constant(true), weight: 9 }, fc.constant(false)),
      random: unitInterval,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      verb: fc.constant('markAsUnheard' as const),
      graceMs: fc.nat(5_000_000),
    }),
  },
  fc.record({
    verb: fc.constant('acknowledge' as const),
    listeners: fc.array(fc.constantFrom('A.one', 'B.two', 'C.three'), { maxLength: 3 }),
  }),
  { arbitrary: fc.record({ verb: fc.constant('redrive' as const) }), weight: 2 },
);

const policies: fc.Arbitrary<RetryPolicy> = fc.record({
  maxRetries: fc.integer({ min: 1, max: 8 }),
  backoff: fc.oneof(
    fc.constantFrom<RetryPolicy['backoff']>(
      (retryCount) => 2 ** retryCount * 60_000,
      () => Number.MAX_VALUE,
      () => Infinity,
      () => NaN,
      () => -1,
      () => {
        throw new Error('no idea');
      },
      () => 5n as unknown as number,
      () => null as unknown as number,
    ),
    fc.integer({ min: 1, max: 10_000_000 }).map((ms) => () => ms),
  ),
  maxBackoffMs: fc.integer({ min: 1, max: 90_000_000 }),
  // At 1, chance may take the whole wait away; that is a test of its own.
  jitter: fc.double({ min: 0, max: 0.99, noNaN: true }),
});

function snapshot(event: OutboxEvent) {
  return {
    status: event.getStatus(),
    retryCount: event.getRetryCount(),
    lastError: event.getLastError(),
    scheduledAt: event.getScheduledAt()?.getTime(),
    processedAt: event.getProcessedAt()?.getTime(),
    acknowledgedBy: event.getAcknowledgedBy(),
    unheardSince: event.getUnheardSince()?.getTime(),
    delayMs: event.getDelayMs(),
  };
}

function apply(event: OutboxEvent, step: Step, policy: RetryPolicy, now: Date): void {
  switch (step.verb) {
    case 'markAsProcessing':
      return event.markAsProcessing();
    case 'markAsCompleted':
      return event.markAsCompleted(now);
    case 'markAsFailed': {
      const { retryable, random } = step;
      return event.markAsFailed('it failed', { policy, retryable, random, now });
    }
    case 'markAsUnheard':
      return event.markAsUnheard(now, { retryInMs: RETRY_IN_MS, graceMs: step.graceMs });
    case 'acknowledge':
      return event.acknowledge(step.listeners);
    case 'redrive':
      return event.redrive(now);
  }
}

/** Runs the steps and hands over what was before and after each that was allowed. */
function run(
  history: readonly { step: Step; passedMs: number }[],
  policy: RetryPolicy,
  check: (seen: {
    step: Step;
    now: number;
    before: ReturnType<typeof snapshot>;
    after: ReturnType<typeof snapshot>;
  }) => void,
): void {
  let now = Date.UTC(2026, 0);
  const event = OutboxEvent.reconstitute({
    id: 'e1',
    eventType: 'a',
    payload: {},
    createdAt: new Date(now),
    scheduledAt: new Date(now),
  });
  for (const { step, passedMs } of history) {
    now += passedMs;
    const before = snapshot(event);
    if (!ALLOWED[step.verb].includes(before.status)) {
      assert.throws(() => apply(event, step, policy, new Date(now)), OutboxError);
      assert.deepEqual(snapshot(event), before);
      continue;
    }
    apply(event, step, policy, new Date(now));
    check({ step, now, before, after: snapshot(event) });
  }
}

const histories = fc.array(
  fc.record({ step: steps, passedMs: fc.integer({ min: 0, max: 3_600_000 }) }),
  { maxLength: 50, size: 'max' },
);

function always(
  check: (policy: RetryPolicy, seen: Parameters<Parameters<typeof run>[2]>[0]) => void,
) {
  fc.assert(
    fc.property(histories, policies, (history, policy) => {
      run(history, policy, (seen) => check(policy, seen));
    }),
    { numRuns: 100 },
  );
}

describe('whatever happens to an event, in whatever order', () => {
  it('it is in one of the four states, and a step that is not allowed throws and changes nothing', () => {
    always((_, { after }) => assert.ok(STATES.includes(after.status)));
  });

  it('it never gets lost: PENDING is due at a known moment, finished has a time, FAILED has a reason', () => {
    always((_, { after: { status, scheduledAt, processedAt, lastError } }) => {
      if (status === 'PENDING') assert.ok(Number.isFinite(scheduledAt));
      const isFinished = status === 'COMPLETED' || status === 'FAILED';
      assert.equal(Number.isFinite(processedAt), isFinished);
      if (status === 'FAILED') assert.match(lastError ?? '', /./);
    });
  });

  it('what can be retried is not set aside by an ordinary failure', () => {
    always((policy, { step, after }) => {
      if (step.verb !== 'markAsFailed' || !step.retryable) return;
      assert.equal(after.status, after.retryCount < policy.maxRetries ? 'PENDING' : 'FAILED');
    });
  });

  it('the count goes up by one with each failure, to zero with a redrive, and not otherwise', () => {
    always((_, { step, before, after }) => {
      if (step.verb === 'markAsFailed') assert.equal(after.retryCount, before.retryCount + 1);
      else if (step.verb === 'redrive') assert.equal(after.retryCount, 0);
      else assert.equal(after.retryCount, before.retryCount);
    });
  });

  it('an exhausted event is never PENDING or PROCESSING again in the same life', () => {
    always((policy, { after }) => {
      if (after.retryCount >= policy.maxRetries) assert.equal(after.status, 'FAILED');
    });
  });

  it('an event comes back from FAILED only by a redrive, and from COMPLETED never', () => {
    always((_, { step, before, after }) => {
      if (before.status === 'COMPLETED') assert.equal(after.status, 'COMPLETED');
      if (before.status === 'FAILED')
        assert.equal(after.status, step.verb === 'redrive' ? 'PENDING' : 'FAILED');
    });
  });

  it('a retry is due later than now, by the wait it answers, and not by more than the cap', () => {
    always((policy, { step, now, after: { status, delayMs, scheduledAt } }) => {
      if (status !== 'PENDING') return;
      if (step.verb === 'markAsFailed') {
        assert.ok(delayMs !== null && delayMs > 0 && delayMs <= policy.maxBackoffMs);
        assert.equal(scheduledAt, Math.trunc(now + delayMs));
      }
      if (step.verb === 'markAsUnheard') assert.equal(scheduledAt, now + RETRY_IN_MS);
    });
  });

  it('a listener that has succeeded stays acknowledged, also over a redrive', () => {
    always((_, { before, after }) => {
      const kept = after.acknowledgedBy.slice(0, before.acknowledgedBy.length);
      assert.deepEqual(kept, before.acknowledgedBy);
      assert.equal(new Set(after.acknowledgedBy).size, after.acknowledgedBy.length);
    });
  });

  it('a wait is answered exactly when the last transition decided one', () => {
    always((_, { step, before, after }) => {
      if (step.verb === 'acknowledge') assert.equal(after.delayMs, before.delayMs);
      else {
        const decides = step.verb === 'markAsFailed' || step.verb === 'markAsUnheard';
        assert.equal(after.delayMs !== null, decides && after.status === 'PENDING');
      }
    });
  });
});
