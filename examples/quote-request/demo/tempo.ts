import { backoffMs, wholeNumber } from '../settings.js';

/** How fast the demo goes: short waits, so that the story fits into a minute. The environment wins. */
export interface Tempo {
  readonly maxRetries: number;
  readonly backoffUnitMs: number;
  readonly leaseMs: number;
  readonly listenerTimeoutMs: number;
}

export function readTempo(): Tempo {
  return {
    maxRetries: wholeNumber('OUTBOX_MAX_RETRIES', 5),
    backoffUnitMs: wholeNumber('OUTBOX_BACKOFF_UNIT_MS', 150),
    leaseMs: wholeNumber('OUTBOX_LEASE_MS', 2_000),
    listenerTimeoutMs: wholeNumber('OUTBOX_LISTENER_TIMEOUT_MS', 5_000),
  };
}

/** As the application reads it. */
export function toEnvironment(tempo: Tempo): NodeJS.ProcessEnv {
  return {
    OUTBOX_MAX_RETRIES: String(tempo.maxRetries),
    OUTBOX_BACKOFF_UNIT_MS: String(tempo.backoffUnitMs),
    OUTBOX_LEASE_MS: String(tempo.leaseMs),
    OUTBOX_LISTENER_TIMEOUT_MS: String(tempo.listenerTimeoutMs),
  };
}

/** All the waits up to the one after so many failures. */
export function waitsMs({ backoffUnitMs }: Tempo, failures: number): number {
  let total = 0;
  for (let failure = 1; failure <= failures; failure++) total += backoffMs(failure, backoffUnitMs);
  return total;
}

export function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
