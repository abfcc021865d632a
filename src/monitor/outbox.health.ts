import { Injectable } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorText } from '../event/error-text.js';
import { assertKnownKeys } from '../event/known-keys.js';
import { invalid } from '../event/outbox-error.js';
import { shown } from '../event/shown.js';
import type { RelayActivity } from '../relay/relay.worker.js';
import type { OutboxStats, OutboxStore } from '../store/outbox-store.js';

/** From where on the outbox is not well. */
export interface HealthThresholds {
  /** The oldest due event has been due for longer than this, in milliseconds; `false`: not looked at. Default 5 minutes. */
  readonly oldestDueAgeMs?: number | false | undefined;
  /** There are more dead letters than this; `false`: not looked at. Default `false`: a restart mends none of them. */
  readonly deadLetters?: number | false | undefined;
  /** The database has not answered within this, in milliseconds, at most 10 minutes. Default 3,000. */
  readonly timeoutMs?: number | undefined;
}

export interface HealthReport {
  readonly status: 'up' | 'down';
  /** What is wrong, a sentence each; empty if nothing is. */
  readonly reasons: readonly string[];
  /** Of this process. `off`: it does not relay (`relay: false`), which is in order. */
  readonly relay: RelayActivity;
  readonly database: 'up' | 'down';
  /** `null` while the database does not answer. */
  readonly due: number | null;
  readonly oldestDueAgeMs: number | null;
  readonly deadLetters: number | null;
}

const DEFAULTS = { oldestDueAgeMs: 300_000, deadLetters: false, timeoutMs: 3_000 } as const;

/** Whether the outbox is well, for health checks. With Terminus, see `nestjs-outbox-relay/terminus`. */
@Injectable()
export class OutboxHealth {
  constructor(
    private readonly store: OutboxStore,
    private readonly relay: () => RelayActivity,
  ) {}

  /**
   * Looks at this process's relay and at the store.
   * @returns what it found, also when the database cannot be reached: it does not throw for that
   * @throws OutboxError `INVALID_ARGUMENT` for a threshold that cannot be meant
   */
  async check(thresholds: HealthThresholds = {}): Promise<HealthReport> {
    const limits = resolve(thresholds);
    const relay = this.relay();
    const reasons: string[] = [];
    if (relay === 'starting') reasons.push('the relay of this process has not started yet');
    if (relay === 'stopping') reasons.push('the relay of this process stops');

    const stats = await this.stats(limits.timeoutMs);
    if (stats instanceof Error) {
      reasons.push(`the database does not answer: ${stats.message}`);
      const unknown = { due: null, oldestDueAgeMs: null, deadLetters: null };
      return { status: 'down', reasons, relay, database: 'down', ...unknown };
    }
    const { due, oldestDueAgeMs, failed } = stats;
    if (limits.oldestDueAgeMs !== false && (oldestDueAgeMs ?? 0) > limits.oldestDueAgeMs) {
      const age = Math.round(oldestDueAgeMs ?? 0);
      reasons.push(
        `the oldest due event has waited for ${age} ms, more than ${limits.oldestDueAgeMs}`,
      );
    }
    if (limits.deadLetters !== false && failed > limits.deadLetters)
      reasons.push(`dead letters: ${failed}, more than ${limits.deadLetters}`);
    return {
      status: reasons.length === 0 ? 'up' : 'down',
      reasons,
      relay,
      database: 'up',
      due,
      oldestDueAgeMs,
      deadLetters: failed,
    };
  }

  private async stats(timeoutMs: number): Promise<OutboxStats | Error> {
    const timeout = new AbortController();
    const late = sleep(timeoutMs, new Error(`no answer within ${timeoutMs} ms`), {
      signal: timeout.signal,
    });
    const answer = this.store.stats().catch((error: unknown) => new Error(errorText(error)));
    try {
      return await Promise.race([answer, late]);
    } finally {
      timeout.abort();
      late.catch(() => {});
    }
  }
}

function resolve(given: HealthThresholds): {
  oldestDueAgeMs: number | false;
  deadLetters: number | false;
  timeoutMs: number;
} {
  assertKnownKeys('', given, Object.keys(DEFAULTS));
  const {
    oldestDueAgeMs = DEFAULTS.oldestDueAgeMs,
    deadLetters = DEFAULTS.deadLetters,
    timeoutMs = DEFAULTS.timeoutMs,
  } = given;
  if (oldestDueAgeMs !== false) assertAmount('oldestDueAgeMs', oldestDueAgeMs, 0);
  if (deadLetters !== false) assertAmount('deadLetters', deadLetters, 0);
  assertAmount('timeoutMs', timeoutMs, 1, 600_000);
  return { oldestDueAgeMs, deadLetters, timeoutMs };
}

function assertAmount(name: string, value: unknown, min: number, max = Infinity): void {
  if (typeof value === 'number' && value >= min && value <= max) return;
  const range = max === Infinity ? `${min} or more` : `${min} to ${max}`;
  throw invalid(`${name} must be a number, ${range}, got ${shown(value)}`);
}
