/** How often an event is tried, and how long it rests in between. */
export interface RetryPolicy {
  /** Attempts allowed before an event is set aside: with 5, the 5th failure is a dead letter. */
  readonly maxRetries: number;
  /** Milliseconds to wait after failure number `retryCount` (1, 2, 3, …). */
  readonly backoff: (retryCount: number) => number;
  /** No wait is longer than this, in milliseconds. */
  readonly maxBackoffMs: number;
  /** Part of the wait that is left to chance, 0 to 1: with 0.2 a wait of 10 minutes becomes 8 to 12. */
  readonly jitter: number;
}

const MINUTE_MS = 60_000;

/** 2, 4, 8, 16 minutes after failures 1 to 4; the 5th is the last (a 32 would come only with more attempts). */
export function exponentialBackoff(retryCount: number): number {
  return 2 ** retryCount * MINUTE_MS;
}

export const DEFAULT_RETRY_POLICY: RetryPolicy = Object.freeze({
  maxRetries: 5,
  backoff: exponentialBackoff,
  maxBackoffMs: 24 * 60 * MINUTE_MS,
  jitter: 0,
});

/**
 * The wait after failure number `retryCount`, in milliseconds. `random` is a number from 0 to 1.
 *
 * A backoff function that throws or answers something that is not a wait must not cost the event its retry, so the
 * default takes its place.
 */
export function retryDelayMs(policy: RetryPolicy, retryCount: number, random: number): number {
  const wanted = ask(policy.backoff, retryCount) ?? exponentialBackoff(retryCount);
  // Capped before chance too, so that what has come to the cap is spread as well, below it.
  const capped = Math.min(wanted, policy.maxBackoffMs);
  const spread = capped * (1 + policy.jitter * (2 * random - 1));
  return Math.min(spread, policy.maxBackoffMs);
}

function ask(backoff: RetryPolicy['backoff'], retryCount: number): number | undefined {
  try {
    const answer: unknown = backoff(retryCount);
    return typeof answer === 'number' && answer >= 0 ? answer : undefined;
  } catch {
    return undefined;
  }
}
