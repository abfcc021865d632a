import type { FailureKind, GateState, Sentinel } from '../sentinel-store.js';

/** A row of `outbox_sentinels` as JSON, without its token. */
export interface SentinelRow {
  readonly key: string;
  readonly version: string;
  readonly stamped_at: string | null;
  readonly failures: number;
  readonly same_failures: number;
  readonly last_error: string | null;
  readonly last_error_kind: FailureKind | null;
  readonly failed_at: string | null;
  readonly closed_at: string | null;
  readonly closed_until: string | null;
  readonly closings: number;
}

/** A row of a list. */
export interface GateStateRow extends SentinelRow {
  readonly running: boolean;
  readonly closed: boolean;
}

export function toSentinel(row: SentinelRow): Sentinel {
  return {
    key: row.key,
    version: row.version,
    stampedAt: date(row.stamped_at),
    failures: row.failures,
    sameFailures: row.same_failures,
    lastError: row.last_error,
    lastErrorKind: row.last_error_kind,
    failedAt: date(row.failed_at),
    closedAt: date(row.closed_at),
    closedUntil: date(row.closed_until),
    closings: row.closings,
  };
}

export function toGateState(row: GateStateRow): GateState {
  return Object.assign(toSentinel(row), { running: row.running, closed: row.closed });
}

function date(text: string | null): Date | null {
  return text === null ? null : new Date(text);
}
