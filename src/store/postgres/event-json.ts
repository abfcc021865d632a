import type { OutboxEventStatus, PreviousLife } from '../../event/outbox-event.js';
import type { OutboxPayload } from '../../event/payload.js';
import type { ClaimedEvent, DeadLetter, EventPage, StoredEvent } from '../outbox-store.js';
import { writeCursor } from '../page-cursor.js';

/** A row as `to_jsonb` writes it. Times are ISO 8601 in UTC, with microseconds that a Date drops. */
interface EventJson {
  readonly id: string;
  readonly event_type: string;
  readonly payload: OutboxPayload;
  readonly metadata: OutboxPayload;
  readonly retry_count: number;
  readonly acknowledged_by: string[];
  readonly scheduled_at: string;
  readonly created_at: string;
}

export interface ClaimedJson extends EventJson {
  readonly unheard_since: string | null;
  readonly claimed_at: string;
}

export interface StoredJson extends EventJson {
  readonly status: OutboxEventStatus;
  readonly last_error: string | null;
  readonly processed_at: string | null;
  readonly previous_lives: PreviousLife[];
  readonly leased_until: string | null;
  readonly unheard_since: string | null;
}

/** The answer of `outbox_list`, with one row more than the page if there is another page. */
export interface EventListJson {
  readonly events: readonly Omit<
    StoredJson,
    'payload' | 'metadata' | 'previous_lives' | 'processed_at'
  >[];
}

export function toClaimedEvent(row: ClaimedJson, leaseToken: string): ClaimedEvent {
  return {
    id: row.id,
    leaseToken,
    eventType: row.event_type,
    payload: row.payload,
    metadata: row.metadata,
    retryCount: row.retry_count,
    acknowledgedBy: row.acknowledged_by,
    scheduledAt: new Date(row.scheduled_at),
    createdAt: new Date(row.created_at),
    unheardSince: date(row.unheard_since),
    claimedAt: new Date(row.claimed_at),
  };
}

export function toDeadLetter(row: StoredJson): DeadLetter {
  return { ...toHistory(row), failedAt: new Date(row.processed_at ?? Number.NaN) };
}

export function toStoredEvent(row: StoredJson): StoredEvent {
  return {
    ...toHistory(row),
    status: row.status,
    scheduledAt: new Date(row.scheduled_at),
    processedAt: date(row.processed_at),
    leasedUntil: date(row.leased_until),
    unheardSince: date(row.unheard_since),
  };
}

export function toEventPage({ events }: EventListJson, limit: number): EventPage {
  const page = events.slice(0, limit);
  const last = page.at(-1);
  return {
    items: page.map((row) => ({
      id: row.id,
      eventType: row.event_type,
      status: row.status,
      retryCount: row.retry_count,
      lastError: row.last_error,
      acknowledgedBy: row.acknowledged_by,
      scheduledAt: new Date(row.scheduled_at),
      createdAt: new Date(row.created_at),
      leasedUntil: date(row.leased_until),
      unheardSince: date(row.unheard_since),
    })),
    next:
      events.length > limit && last !== undefined ? writeCursor(last.scheduled_at, last.id) : null,
  };
}

function toHistory(row: StoredJson): Omit<DeadLetter, 'failedAt'> {
  return {
    id: row.id,
    eventType: row.event_type,
    payload: row.payload,
    metadata: row.metadata,
    retryCount: row.retry_count,
    lastError: row.last_error,
    acknowledgedBy: row.acknowledged_by,
    createdAt: new Date(row.created_at),
    previousLives: row.previous_lives,
  };
}

function date(text: string | null): Date | null {
  return text === null ? null : new Date(text);
}
