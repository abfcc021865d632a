import type { RetryPolicy } from '../event/retry-policy.js';

/** The relay's part of the options, complete. Times in milliseconds. */
export interface RelaySettings {
  readonly retry: RetryPolicy;
  /** Events taken with one claim. */
  readonly batchSize: number;
  /** Events delivered at the same time. */
  readonly concurrency: number;
  /** How long a claimed event is held without a sign of life. */
  readonly leaseMs: number;
  readonly listenerTimeoutMs: number;
  /** How long a stop waits for listeners at work. */
  readonly shutdownTimeoutMs: number;
  /** How long an event may wait for somebody to listen to its type before it is a dead letter. */
  readonly unheardGraceMs: number;
}

/** How soon an event that nobody listens to is tried again: another process may know its listener. */
export const UNHEARD_RETRY_MS = 30_000;
