import type { PayloadOf } from '../delivery/outbox-context.js';
import { assertEventType } from '../event/event-type.js';
import { assertKnownKeys } from '../event/known-keys.js';
import { invalid } from '../event/outbox-error.js';
import { shown } from '../event/shown.js';
import type { FailureClassifier } from './classify-failure.js';
import { closedForMs, type GatePolicy } from './judge-gate.js';

/** What the callbacks of a gate are told. */
export interface GateRun {
  readonly key: string;
  readonly version: string;
  /** Aborted when the run is over: out of time, the lease was lost, the process stops. Pass it to `fetch` and the like. */
  readonly signal: AbortSignal;
}

/** Work that is done once: load, publish, stamp. */
export interface Gate<EventType extends string = string, Row = unknown> {
  /** Names the work, e.g. `records:tenant-7`: one run at a time, one sentinel, one count. 1 to 255 characters. */
  readonly key: string;
  /** Another version is other work: it runs again. 1 to 100 characters or a number. Default `'1'`. */
  readonly version?: string | number | undefined;
  readonly eventType: EventType;
  /**
   * Fetches and stores what is to be published. It is called again after each failure, so it must be idempotent
   * (`ON CONFLICT DO UPDATE`).
   */
  readonly load: (run: GateRun) => PromiseLike<readonly Row[]> | readonly Row[];
  /** The payload of the event that carries these rows. */
  readonly payload: (rows: readonly Row[]) => PayloadOf<EventType>;
  /** Rows in one event, 1 to 65,535. Default 1,000. */
  readonly chunkSize?: number | undefined;
  /**
   * When there are no rows: `stamp` (there is nothing, and nobody asks again) or `leave` (they may come, each call asks
   * again).
   */
  readonly whenEmpty: 'stamp' | 'leave';
  /** A stamp of your own, e.g. a column `synced_at`; with `isStamped`. Default: the table `outbox_sentinels`. */
  readonly stamp?: ((run: GateRun) => unknown) | undefined;
  /** Whether your own stamp is there. */
  readonly isStamped?: ((run: GateRun) => PromiseLike<boolean> | boolean) | undefined;
  /** How often this call tries again by itself after a transient failure, 0 to 20. Default 0: the caller does. */
  readonly retries?: number | undefined;
  /** Milliseconds to wait before retry number 1, 2, …. Default 500 ms, doubling, at most 30 s. */
  readonly backoffMs?: ((retry: number) => number) | undefined;
  /** From so many failures in a row on they are logged as errors; so many with the same message close the gate. Default 3. */
  readonly alarmAfter?: number | undefined;
  /** For how long the gate closes the 1st, 2nd, … time in a row, in milliseconds. Default 1, 2, 4, … minutes, at most an hour. */
  readonly closedForMs?: ((closings: number) => number) | undefined;
  /** Says what a retry can mend; `undefined` leaves it to the default, `classifyFailure`. */
  readonly classify?: FailureClassifier | undefined;
  /** How long `load`, `stamp` and `isStamped` may take each, in milliseconds. Default 120,000. */
  readonly timeoutMs?: number | undefined;
  /** How long a run that has died keeps others away, in milliseconds, 1,000 or more. Renewed while it lives. Default 30,000. */
  readonly leaseMs?: number | undefined;
}

/** What came of a run that did not fail. */
export type GateResult =
  /** Every listener has succeeded for every row, and the sentinel is stamped. */
  | { readonly outcome: 'stamped'; readonly rows: number }
  | { readonly outcome: 'already-stamped' }
  /** There was nothing to publish. */
  | { readonly outcome: 'empty'; readonly stamped: boolean }
  /** Another process, or another call, is at it. */
  | { readonly outcome: 'running-elsewhere' };

/** A gate, complete and checked. */
export interface ResolvedGate extends GatePolicy {
  readonly key: string;
  readonly version: string;
  readonly eventType: string;
  readonly load: (run: GateRun) => unknown;
  readonly payload: (rows: readonly unknown[]) => unknown;
  readonly chunkSize: number;
  readonly whenEmpty: 'stamp' | 'leave';
  readonly own:
    | {
        readonly stamp: (run: GateRun) => unknown;
        readonly isStamped: (run: GateRun) => unknown;
      }
    | undefined;
  readonly retries: number;
  readonly backoffMs: (retry: number) => number;
  readonly timeoutMs: number;
  readonly leaseMs: number;
}

const KEYS = [
  'key',
  'version',
  'eventType',
  'load',
  'payload',
  'chunkSize',
  'whenEmpty',
  'stamp',
  'isStamped',
  'retries',
  'backoffMs',
  'alarmAfter',
  'closedForMs',
  'classify',
  'timeoutMs',
  'leaseMs',
];
const DAY_MS = 86_400_000;

/** @throws OutboxError `INVALID_ARGUMENT` that names the field, the value and the fix */
export function resolveGate<EventType extends string, Row>(
  gate: Gate<EventType, Row>,
): ResolvedGate {
  assertObject(gate);
  assertKnownKeys('gate.', gate, KEYS);
  assertEventType(gate.eventType);
  if (!['stamp', 'leave'].includes(gate.whenEmpty)) {
    throw invalid(
      `gate.whenEmpty must be 'stamp' (nothing there means done) or 'leave' (ask again each time), got ${shown(gate.whenEmpty)}`,
    );
  }
  return {
    key: keyOf(gate.key),
    version: versionOf(gate.version ?? '1'),
    eventType: gate.eventType,
    load: wanted('load', gate.load),
    payload: wanted('payload', gate.payload) as ResolvedGate['payload'],
    chunkSize: whole('chunkSize', gate.chunkSize ?? 1_000, 1, 65_535),
    whenEmpty: gate.whenEmpty,
    own: ownStamp(gate.stamp, gate.isStamped),
    retries: whole('retries', gate.retries ?? 0, 0, 20),
    backoffMs: wanted('backoffMs', gate.backoffMs ?? backoff),
    alarmAfter: whole('alarmAfter', gate.alarmAfter ?? 3, 1, 1_000),
    closedForMs: wanted('closedForMs', gate.closedForMs ?? closedForMs),
    classify: wanted('classify', gate.classify ?? (() => undefined)),
    timeoutMs: whole('timeoutMs', gate.timeoutMs ?? 120_000, 1, DAY_MS),
    leaseMs: whole('leaseMs', gate.leaseMs ?? 30_000, 1_000, DAY_MS),
  };
}

function assertObject(gate: unknown): void {
  if (typeof gate === 'object' && gate !== null) return;
  throw invalid(`gate must be an object { key, eventType, load, … }, got ${shown(gate)}`);
}

/** @throws OutboxError `INVALID_ARGUMENT` */
export function keyOf(key: unknown): string {
  if (isName(key, 255)) return key;
  throw invalid(
    `gate.key must be a name of 1 to 255 characters, e.g. 'records:tenant-7', got ${shown(key)}`,
  );
}

/** @throws OutboxError `INVALID_ARGUMENT` */
export function versionOf(version: unknown): string {
  const text = typeof version === 'number' && Number.isFinite(version) ? String(version) : version;
  if (isName(text, 100)) return text;
  throw invalid(
    `gate.version must be a number or a name of 1 to 100 characters, got ${shown(version)}`,
  );
}

function isName(value: unknown, longest: number): value is string {
  return (
    typeof value === 'string' &&
    value.trim() !== '' &&
    value.length <= longest &&
    !value.includes('\0') &&
    value.isWellFormed()
  );
}

function ownStamp(stamp: unknown, isStamped: unknown): ResolvedGate['own'] {
  if (stamp === undefined && isStamped === undefined) return undefined;
  if (stamp === undefined || isStamped === undefined) {
    throw invalid(
      'gate.stamp and gate.isStamped belong together: one sets your stamp, the other looks for it',
    );
  }
  return {
    stamp: wanted('stamp', stamp) as (run: GateRun) => unknown,
    isStamped: wanted('isStamped', isStamped) as (run: GateRun) => unknown,
  };
}

function backoff(retry: number): number {
  return Math.min(500 * 2 ** (retry - 1), 30_000);
}

function wanted<T>(name: string, value: T): T {
  if (typeof value === 'function') return value;
  throw invalid(`gate.${name} must be a function, got ${shown(value)}`);
}

function whole(name: string, value: unknown, min: number, max: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max)
    return value;
  throw invalid(`gate.${name} must be a whole number from ${min} to ${max}, got ${shown(value)}`);
}
