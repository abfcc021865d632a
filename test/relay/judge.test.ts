import { describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type { DeliveryOutcome } from '../../src/delivery/delivery.js';
import { NonRetryableError } from '../../src/event/outbox-error.js';
import { DEFAULT_RETRY_POLICY } from '../../src/event/retry-policy.js';
import { judge, judgeExpired, type JudgeContext } from '../../src/relay/judge.js';
import type { ClaimedEvent } from '../../src/store/outbox-store.js';

const MINUTE_MS = 60_000;
const NOW = new Date('2026-01-01T12:00:00Z');

const CONTEXT: JudgeContext = {
  settings: { retry: DEFAULT_RETRY_POLICY, unheardGraceMs: 24 * 60 * MINUTE_MS },
  now: NOW,
  random: 0.5,
};

function claimed(given: Partial<ClaimedEvent> = {}): ClaimedEvent {
  return {
    id: randomUUID(),
    leaseToken: randomUUID(),
    eventType: 'x',
    payload: {},
    metadata: {},
    retryCount: 0,
    acknowledgedBy: [],
    scheduledAt: NOW,
    createdAt: NOW,
    unheardSince: null,
    claimedAt: NOW,
    ...given,
  };
}

const failedWith = (...errors: unknown[]): Extract<DeliveryOutcome, { kind: 'answered' }> => ({
  kind: 'answered',
  succeeded: ['Good.one'],
  failures: errors.map((error, index) => ({ listener: `Bad.${index}`, error })),
});

describe('judging a delivery', () => {
  it('completes it when every listener has succeeded', () => {
    const event = claimed();
    expect(judge(event, { kind: 'answered', succeeded: ['A.a'], failures: [] }, CONTEXT)).toEqual({
      id: event.id,
      leaseToken: event.leaseToken,
      outcome: 'completed',
    });
  });

  it('retries after 2, 4, 8 and 16 minutes, and sets it aside at the fifth failure', () => {
    const settlements = [0, 1, 2, 3, 4].map((retryCount) =>
      judge(claimed({ retryCount }), failedWith(new Error('no')), CONTEXT),
    );
    expect(settlements).toMatchObject([
      { outcome: 'retry', retryCount: 1, delayMs: 2 * MINUTE_MS },
      { outcome: 'retry', retryCount: 2, delayMs: 4 * MINUTE_MS },
      { outcome: 'retry', retryCount: 3, delayMs: 8 * MINUTE_MS },
      { outcome: 'retry', retryCount: 4, delayMs: 16 * MINUTE_MS },
      { outcome: 'failed', retryCount: 5 },
    ]);
  });

  it('keeps who has succeeded, now and before, and names who has failed and why', () => {
    const event = claimed({ acknowledgedBy: ['Earlier.one'] });
    expect(judge(event, failedWith(new Error('no'), 'text'), CONTEXT)).toMatchObject({
      acknowledgedBy: ['Earlier.one', 'Good.one'],
      lastError: 'Bad.0: no; Bad.1: text',
    });
  });

  it('names every listener that has failed, however much the first has to say', () => {
    const long = new Error('no '.repeat(5_000));
    const { lastError } = judge(claimed(), failedWith(long, long, long), CONTEXT) as {
      lastError: string;
    };
    for (const name of ['Bad.0', 'Bad.1', 'Bad.2']) expect(lastError).toContain(`${name}: no no`);
    expect(lastError.length).toBeLessThanOrEqual(2_000);
  });

  it('sets it aside at once if no failure can mend, and retries if one can', () => {
    const never = new NonRetryableError('never');
    expect(judge(claimed(), failedWith(never, never), CONTEXT)).toMatchObject({
      outcome: 'failed',
      retryCount: 1,
    });
    expect(judge(claimed(), failedWith(never, new Error('no')), CONTEXT)).toMatchObject({
      outcome: 'retry',
      retryCount: 1,
    });
  });

  it('sends one that nobody hears back for later without spending an attempt, until the grace is over', () => {
    const since = (agoMs: number): Date => new Date(NOW.getTime() - agoMs);
    for (const unheardSince of [null, since(23 * 60 * MINUTE_MS)]) {
      const settlement = judge(claimed({ unheardSince }), { kind: 'unheard' }, CONTEXT);
      expect(settlement).toMatchObject({ outcome: 'unheard' });
      expect(settlement).not.toHaveProperty('retryCount');
    }
    const event = claimed({ unheardSince: since(24 * 60 * MINUTE_MS) });
    expect(judge(event, { kind: 'unheard' }, CONTEXT)).toMatchObject({
      outcome: 'failed',
      retryCount: 0,
      lastError: expect.stringMatching(/nobody has listened to 'x' since 2025-12-31/),
    });
  });
});

describe('judging an event whose relay died over it', () => {
  const alone = { index: 0, of: 1 };

  it('counts a failed attempt, and says what has happened', () => {
    expect(judgeExpired(claimed({ retryCount: 1 }), CONTEXT, alone)).toMatchObject({
      outcome: 'retry',
      retryCount: 2,
      delayMs: 4 * MINUTE_MS,
      lastError: expect.stringContaining('the lease ran out'),
    });
  });

  it('sets it aside after five crashes, among however many', () => {
    const event = claimed({ retryCount: 4 });
    expect(judgeExpired(event, CONTEXT, { index: 7, of: 9 })).toMatchObject({
      outcome: 'failed',
      retryCount: 5,
    });
  });

  it('spreads those that went down together over twice the backoff', () => {
    const delays = [0, 1, 2, 3].map((index) => judgeExpired(claimed(), CONTEXT, { index, of: 4 }));
    expect(delays).toMatchObject([
      { delayMs: 2 * MINUTE_MS },
      { delayMs: 2.5 * MINUTE_MS },
      { delayMs: 3 * MINUTE_MS },
      { delayMs: 3.5 * MINUTE_MS },
    ]);
  });
});
