import type { FailureKind, Sentinel, SentinelFailure } from '../store/sentinel-store.js';
import { classifyFailure, type FailureClassifier } from './classify-failure.js';
import { reasonText } from './gate-errors.js';

export interface GatePolicy {
  /** From so many failures in a row on it is said louder; so many of the same are deterministic. */
  readonly alarmAfter: number;
  readonly closedForMs: (closings: number) => number;
  readonly classify: FailureClassifier;
}

const LONGEST_CLOSED_MS = 365 * 86_400_000;

/** 1, 2, 4, … minutes, at most an hour. */
export function closedForMs(closings: number): number {
  return Math.min(2 ** (closings - 1), 60) * 60_000;
}

/** What a failure leads to. A deterministic one closes the gate, and so does an unknown one that comes back unchanged. */
export function judgeGate(before: Sentinel, error: unknown, policy: GatePolicy): SentinelFailure {
  const text = reasonText(error);
  const sameFailures = text === before.lastError ? before.sameFailures + 1 : 1;
  const known = kindOf(error, policy.classify);
  const kind = known === 'unknown' && sameFailures >= policy.alarmAfter ? 'deterministic' : known;
  return {
    failures: before.failures + 1,
    sameFailures,
    error: text,
    kind,
    closeMs: kind === 'deterministic' ? closeMsOf(before.closings + 1, policy) : null,
  };
}

function closeMsOf(closings: number, policy: GatePolicy): number {
  try {
    return waitMs(policy.closedForMs(closings));
  } catch {
    // The failure is what is to be told, not that of whoever says for how long.
    return closedForMs(closings);
  }
}

/** The user's classifier has the first word; one that fails itself has none. */
export function kindOf(error: unknown, classify: FailureClassifier): FailureKind {
  try {
    const kind = classify(error);
    if (kind === 'transient' || kind === 'deterministic' || kind === 'unknown') return kind;
  } catch {
    // The failure is what is to be told, not that of whoever judges it.
  }
  return classifyFailure(error);
}

/** A wait from a function of the user's. */
export function waitMs(ms: unknown): number {
  return typeof ms === 'number' && ms > 0 ? Math.min(ms, LONGEST_CLOSED_MS) : 0;
}
