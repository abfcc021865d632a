import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  DEFAULT_RETRY_POLICY,
  exponentialBackoff,
  retryDelayMs,
  type RetryPolicy,
} from '../../src/event/retry-policy.js';

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

function policy(changes: Partial<RetryPolicy>): RetryPolicy {
  return { ...DEFAULT_RETRY_POLICY, ...changes };
}

describe('the default policy', () => {
  it('is the one written down: 5 attempts, 2, 4, 8, 16 (32 with more attempts) minutes, no jitter', () => {
    expect(DEFAULT_RETRY_POLICY).toMatchObject({ maxRetries: 5, jitter: 0, maxBackoffMs: DAY });
    const waits = [1, 2, 3, 4, 5].map(
      (failure) => retryDelayMs(DEFAULT_RETRY_POLICY, failure, 0.9) / MINUTE,
    );
    expect(waits).toEqual([2, 4, 8, 16, 32]);
  });

  it('cannot be changed by accident', () => {
    expect(() => Object.assign(DEFAULT_RETRY_POLICY, { maxRetries: 0 })).toThrow(TypeError);
  });
});

describe('the wait', () => {
  it.each([10, 11, 39, 40, 1_000, 1_024, 5_000])('after failure %i is capped', (failure) => {
    const wait = retryDelayMs(DEFAULT_RETRY_POLICY, failure, 0.5);
    expect(wait).toBe(Math.min(exponentialBackoff(failure), DAY));
    expect(Number.isFinite(wait)).toBe(true);
  });

  it.each<[string, () => unknown]>([
    ['throws', () => raise()],
    ['answers NaN', () => NaN],
    ['answers a negative number', () => -1],
    ['answers nothing', () => undefined],
    ['answers null', () => null],
    ['answers a string', () => '5'],
    ['answers a BigInt', () => 5n],
    ['answers true', () => true],
    ['answers a promise', () => Promise.resolve(5)],
    ['answers a Date', () => new Date(5)],
  ])('is the default one when the backoff function %s', (_, backoff) => {
    expect(retryDelayMs(policy({ backoff: backoff as RetryPolicy['backoff'] }), 3, 0.5)).toBe(
      8 * MINUTE,
    );
  });

  it('is asked for with the number of the failure', () => {
    const backoff = (retryCount: number) => retryCount * 7;
    expect(retryDelayMs(policy({ backoff }), 3, 0.5)).toBe(21);
  });

  it('may be none, and an infinite one is the cap', () => {
    expect(retryDelayMs(policy({ backoff: () => 0 }), 1, 0.5)).toBe(0);
    expect(retryDelayMs(policy({ backoff: () => Infinity }), 1, 0.5)).toBe(DAY);
    expect(retryDelayMs(policy({ backoff: () => Infinity, jitter: 1 }), 1, 0)).toBe(0);
  });
});

describe('jitter', () => {
  it.each([
    [0, 8],
    [0.25, 9],
    [0.5, 10],
    [0.75, 11],
    [1, 12],
  ])('of 0.2 with chance at %p makes 10 minutes %p', (random, minutes) => {
    const tenMinutes = policy({ backoff: () => 10 * MINUTE, jitter: 0.2 });
    expect(retryDelayMs(tenMinutes, 1, random)).toBeCloseTo(minutes * MINUTE, 5);
  });

  it('spreads waits at the cap as well, below it, so that events do not come back together', () => {
    const capped = policy({ backoff: () => 100 * DAY, jitter: 0.5 });
    expect([0, 0.25, 0.5, 1].map((random) => retryDelayMs(capped, 1, random) / DAY)).toEqual([
      0.5, 0.75, 1, 1,
    ]);
  });

  it('stays within its bounds, below the cap, and a number', () => {
    const unit = fc.double({ min: 0, max: 1, noNaN: true });
    const waits = fc.double({ min: 0, noNaN: true });
    const caps = fc.integer({ min: 0, max: 365 * DAY });
    fc.assert(
      fc.property(waits, caps, unit, unit, (wait, maxBackoffMs, jitter, random) => {
        const delay = retryDelayMs(
          policy({ backoff: () => wait, maxBackoffMs, jitter }),
          1,
          random,
        );
        const base = Math.min(wait, maxBackoffMs);
        expect(delay).toBeGreaterThanOrEqual(base * (1 - jitter) * (1 - 1e-9));
        expect(delay).toBeLessThanOrEqual(Math.min(base * (1 + jitter) * (1 + 1e-9), maxBackoffMs));
      }),
    );
  });
});

function raise(): never {
  throw new Error('no idea');
}
