import type { OutboxEventStatus, PreviousLife } from '../../event/outbox-event.js';
import type { OutboxPayload } from '../../event/payload.js';
import type {
  ClaimedEvent,
  DeadLetter,
  NewEvent,
  OutboxStats,
  Settlement,
  StoredEvent,
} from '../outbox-store.js';

/** Text as the server sent it. Times are milliseconds since the epoch with microseconds behind the point. */
export type TextRow = Readonly<Record<string, string | null>>;

/**
 * Columns of a claimed row, times as numbers: a Date would cut the microseconds that give the order. What is as in a
 * fresh event comes as NULL: at full speed, reading columns is a good part of the work.
 */
export const CLAIMED_COLUMNS = `id, event_type, payload, nullif(metadata, '{}') AS metadata,
  nullif(retry_count, 0) AS retry_count, array_to_json(nullif(acknowledged_by, '{}')) AS acknowledged_by,
  ${epochMs('scheduled_at')}, ${epochMs('created_at')}, ${epochMs('unheard_since')}, ${epochMs('claimed_at')}`;

// The text of a time depends on the session's DateStyle and TimeZone; this one is read back as it was written.
export const STORED_COLUMNS = `id, event_type, payload, metadata, status, retry_count, last_error, previous_lives,
  array_to_json(acknowledged_by) AS acknowledged_by,
  to_char(processed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS processed_at_text,
  ${epochMs('scheduled_at')}, ${epochMs('created_at')}, ${epochMs('processed_at')},
  ${epochMs('leased_until')}, ${epochMs('unheard_since')}`;

// date_part and not extract, which since PostgreSQL 14 goes the long way by numeric.
function epochMs(column: string): string {
  return `date_part('epoch', ${column}) * 1000 AS ${column}`;
}

export function toClaimedEvents(rows: readonly TextRow[], leaseToken: string): ClaimedEvent[] {
  // One statement, one moment.
  const claimedAt = rows[0] === undefined ? new Date(NaN) : date(rows[0], 'claimed_at');
  const sharedType = shared();
  // RETURNING gives rows in the order they lie on disk.
  return rows
    .map((row) => ({ row, due: Number(row['scheduled_at']) }))
    .toSorted((a, b) => a.due - b.due)
    .map(({ row, due }) => ({
      id: text(row, 'id'),
      leaseToken,
      eventType: sharedType(text(row, 'event_type')),
      payload: json(row, 'payload') as OutboxPayload,
      metadata: row['metadata'] == null ? {} : (json(row, 'metadata') as OutboxPayload),
      retryCount: Number(row['retry_count']),
      acknowledgedBy:
        row['acknowledged_by'] == null ? [] : (json(row, 'acknowledged_by') as string[]),
      scheduledAt: new Date(due),
      createdAt: date(row, 'created_at'),
      unheardSince: dateOrNull(row, 'unheard_since'),
      claimedAt,
    }));
}

export function toDeadLetter(row: TextRow): DeadLetter {
  return { ...toHistory(row), failedAt: date(row, 'processed_at') };
}

export function toStoredEvent(row: TextRow): StoredEvent {
  return {
    ...toHistory(row),
    status: text(row, 'status') as OutboxEventStatus,
    scheduledAt: date(row, 'scheduled_at'),
    processedAt: dateOrNull(row, 'processed_at'),
    leasedUntil: dateOrNull(row, 'leased_until'),
    unheardSince: dateOrNull(row, 'unheard_since'),
  };
}

function toHistory(row: TextRow): Omit<DeadLetter, 'failedAt'> {
  return {
    id: text(row, 'id'),
    eventType: text(row, 'event_type'),
    payload: json(row, 'payload') as OutboxPayload,
    metadata: json(row, 'metadata') as OutboxPayload,
    retryCount: Number(row['retry_count']),
    lastError: row['last_error'] ?? null,
    acknowledgedBy: json(row, 'acknowledged_by') as string[],
    createdAt: date(row, 'created_at'),
    previousLives: json(row, 'previous_lives') as PreviousLife[],
  };
}

/** The argument of `outbox_enqueue`. */
export function fromNewEvents(events: readonly NewEvent[]): string {
  return JSON.stringify(newEventRecords(events));
}

/** The arguments of `outbox_enqueue_one`, as text. */
export function fromNewEvent(event: NewEvent): (string | null)[] {
  const { id, eventType, payload, metadata, scheduledAt, delayMs } = event;
  return [
    id,
    eventType,
    JSON.stringify(payload),
    JSON.stringify(metadata),
    scheduledAt?.toISOString() ?? null,
    delayMs?.toString() ?? null,
  ];
}

/** The argument of `outbox_enqueue`, not yet as text. */
export function newEventRecords(events: readonly NewEvent[]): object[] {
  return events.map((event) => ({
    id: event.id,
    event_type: event.eventType,
    payload: event.payload,
    metadata: event.metadata,
    scheduled_at: event.scheduledAt?.toISOString(),
    delay_ms: event.delayMs,
  }));
}

/** The argument of `outbox_settle`. */
export function fromSettlements(settlements: readonly Settlement[]): string {
  return JSON.stringify(settlementRecords(settlements));
}

/** The same, not yet as text. */
export function settlementRecords(settlements: readonly Settlement[]): object[] {
  return settlements.map(fromSettlement);
}

/** The answer of `outbox_stats`. */
export interface StatsRow {
  readonly due: number;
  readonly scheduled: number;
  readonly processing: number;
  readonly failed: number;
  readonly completed_estimate: number | null;
  readonly oldest_due_age_ms: number | null;
  readonly unheard: Record<string, number>;
}

export function toStats(row: StatsRow): OutboxStats {
  return {
    due: row.due,
    scheduled: row.scheduled,
    processing: row.processing,
    failed: row.failed,
    completedEstimate: row.completed_estimate,
    oldestDueAgeMs: row.oldest_due_age_ms,
    unheard: row.unheard,
  };
}

function fromSettlement(settlement: Settlement): object {
  const lease = { id: settlement.id, lease_token: settlement.leaseToken };
  switch (settlement.outcome) {
    case 'completed':
      return { ...lease, status: 'COMPLETED', unheard: false };
    case 'retry':
      return { ...lease, ...failure(settlement), status: 'PENDING', delay_ms: settlement.delayMs };
    case 'failed':
      return { ...lease, ...failure(settlement), status: 'FAILED' };
    case 'unheard':
      return { ...lease, status: 'PENDING', delay_ms: settlement.delayMs, unheard: true };
    case 'released':
      return { ...lease, status: 'PENDING', acknowledged_by: settlement.acknowledgedBy };
  }
}

function failure(settlement: {
  retryCount: number;
  lastError: string;
  acknowledgedBy: readonly string[];
}): object {
  return {
    retry_count: settlement.retryCount,
    last_error: settlement.lastError,
    acknowledged_by: settlement.acknowledgedBy,
    unheard: false,
  };
}

/** Gives one string for equal ones in a row: looked up again and again, it is hashed only once. */
function shared(): (text: string) => string {
  let last = '';
  return (given) => (given === last ? last : (last = given));
}

function text(row: TextRow, column: string): string {
  return row[column] ?? '';
}

function json(row: TextRow, column: string): unknown {
  return JSON.parse(text(row, column));
}

function date(row: TextRow, column: string): Date {
  return new Date(Number(row[column]));
}

function dateOrNull(row: TextRow, column: string): Date | null {
  return row[column] == null ? null : date(row, column);
}
