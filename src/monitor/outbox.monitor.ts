import { Injectable } from '@nestjs/common';
import { isEventId } from '../event/event-id.js';
import { assertKnownKeys } from '../event/known-keys.js';
import { invalid } from '../event/outbox-error.js';
import { shown } from '../event/shown.js';
import type { Activity, KnownListener, RelayState } from '../store/activity-store.js';
import { pageSize } from '../store/page-cursor.js';
import type { EventPage, OutboxStats, OutboxStore, StoredEvent } from '../store/outbox-store.js';

export interface ActivityOptions {
  /** How far back, in milliseconds, at most 25 hours. Default an hour. */
  readonly sinceMs?: number | undefined;
  /** Length of a step, in milliseconds: whole minutes. Default a minute. */
  readonly stepMs?: number | undefined;
  /** Only of this event type. */
  readonly eventType?: string | undefined;
}

export interface ListEventsOptions {
  /** `due`: a relay would claim it now. `scheduled`: for later, or waiting for a retry. `processing`: a relay has it. */
  readonly state: 'due' | 'scheduled' | 'processing';
  readonly eventType?: string | undefined;
  /** Page size, 1 to 500. Default 50. */
  readonly limit?: number | undefined;
  /** `next` of the page before. Default: the first page. */
  readonly after?: string | null | undefined;
}

/** A relay, and whether it is there. */
export interface MonitoredRelay extends RelayState {
  /** It has reported within the last minute (it does every 15 seconds), and has not ended. */
  readonly alive: boolean;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const LONGEST_MS = 25 * HOUR_MS;
const STATES = ['due', 'scheduled', 'processing'] as const;

/** What goes on in the outbox: for dashboards, alarms and whoever is on call. It only looks. */
@Injectable()
export class OutboxMonitor {
  constructor(
    private readonly store: OutboxStore,
    private readonly known: () => readonly KnownListener[],
    private readonly aliveWithinMs: number,
  ) {}

  /** Counts by state and the age of the oldest due event, cheap enough to ask every few seconds. */
  async stats(): Promise<OutboxStats> {
    return this.store.stats();
  }

  /** Every process that relays, or did within a day, the one heard last first. Empty with a store that keeps no reports. */
  async relays(): Promise<MonitoredRelay[]> {
    const states = (await this.store.activity?.relays()) ?? [];
    const isAlive = ({ stoppedAt, silentMs }: RelayState): boolean =>
      stoppedAt === null && silentMs <= this.aliveWithinMs;
    return states.map((state) => Object.assign({ alive: isAlive(state) }, state));
  }

  /**
   * What relays settled, by event type, in steps of time, oldest first; steps in which nothing happened are left out.
   * From the relays' own counts: one that is killed takes those of its last 15 seconds along (never an event).
   * @throws OutboxError `INVALID_ARGUMENT`
   */
  async activity(options: ActivityOptions = {}): Promise<Activity[]> {
    assertKnownKeys('', options, ['sinceMs', 'stepMs', 'eventType']);
    const { sinceMs = HOUR_MS, stepMs = MINUTE_MS, eventType } = options;
    if (!(Number.isInteger(sinceMs) && sinceMs >= MINUTE_MS && sinceMs <= LONGEST_MS)) {
      throw invalid(
        `sinceMs must be a whole number from ${MINUTE_MS} to ${LONGEST_MS} (25 hours), got ${shown(sinceMs)}`,
      );
    }
    if (!(Number.isInteger(stepMs) && stepMs >= MINUTE_MS && stepMs % MINUTE_MS === 0)) {
      throw invalid(`stepMs must be whole minutes (${MINUTE_MS}, …), got ${shown(stepMs)}`);
    }
    assertEventType(eventType);
    return (await this.store.activity?.activity({ sinceMs, stepMs, eventType })) ?? [];
  }

  /**
   * A page of events that are not finished, the one due first in front, without payloads. Dead letters are listed by
   * `OutboxDeadLetters`.
   * @throws OutboxError `INVALID_ARGUMENT`
   */
  async events(options: ListEventsOptions): Promise<EventPage> {
    assertKnownKeys('', options, ['state', 'eventType', 'limit', 'after']);
    const { state, eventType, after } = options;
    if (!STATES.includes(state)) {
      throw invalid(`state must be ${STATES.join(', ')}, got ${shown(state)}`);
    }
    const limit = pageSize(options.limit);
    assertEventType(eventType);
    return this.store.list({ state, eventType, limit, after: after ?? undefined });
  }

  /** An event in whatever state; `null` if there is none with this id. */
  async find(id: string): Promise<StoredEvent | null> {
    if (!isEventId(id)) throw invalid(`an event id is a UUID, got ${shown(id)}`);
    return this.store.find(id);
  }

  /** The `@OnEvent` methods of this process. */
  listeners(): readonly KnownListener[] {
    return this.known();
  }
}

/** One to look for: any that was stored may be. */
function assertEventType(eventType: unknown): void {
  if (eventType === undefined || (typeof eventType === 'string' && !eventType.includes('\0')))
    return;
  throw invalid(`eventType must be a text without NUL, got ${shown(eventType)}`);
}
