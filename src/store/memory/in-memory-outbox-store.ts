import { randomUUID } from 'node:crypto';
import { invalid } from '../../event/outbox-error.js';
import type { OutboxEventStatus, PreviousLife } from '../../event/outbox-event.js';
import type { OutboxPayload } from '../../event/payload.js';
import {
  OutboxStore,
  type ClaimRequest,
  type ClaimedEvent,
  type DeadLetter,
  type DeadLetterFilter,
  type DeadLetterPage,
  type DeadLetterPageRequest,
  type EventPage,
  type EventPageRequest,
  type Lease,
  type ListedEvent,
  type NewEvent,
  type OutboxStats,
  type PruneRequest,
  type RedriveRequest,
  type SettledAndClaimed,
  type Settlement,
  type SqlExecutor,
  type StoredEvent,
} from '../outbox-store.js';
import { InMemoryActivityStore } from './in-memory-activity-store.js';
import { InMemorySentinelStore } from './in-memory-sentinel-store.js';

interface Row {
  readonly id: string;
  readonly eventType: string;
  /** As text, so that nobody shares an object with the store. */
  readonly payload: string;
  readonly metadata: string;
  readonly createdAt: number;
  /** Tells apart rows that are due, or were set aside, in the same millisecond. */
  readonly sequence: number;
  status: OutboxEventStatus;
  retryCount: number;
  lastError: string | null;
  scheduledAt: number;
  processedAt: number | null;
  acknowledgedBy: readonly string[];
  leaseToken: string | null;
  leasedUntil: number | null;
  unheardSince: number | null;
  previousLives: readonly PreviousLife[];
}

/**
 * Events in memory, by the same rules as in PostgreSQL: leases, fencing, the order of due rows. For tests and
 * prototypes: a restart forgets everything, and there is no transaction to be part of.
 *
 * Time is the store's own and can be moved on, so that a test need not wait for a backoff:
 * `store.advance(2 * 60_000)`.
 */
export class InMemoryOutboxStore extends OutboxStore {
  override readonly sentinels = new InMemorySentinelStore(() => this.now());
  override readonly activity = new InMemoryActivityStore(() => this.now());
  private readonly rows = new Map<string, Row>();
  private offsetMs = 0;
  private sequence = 0;

  /** Moves the store's clock on, in milliseconds. */
  advance(ms: number): void {
    this.offsetMs += ms;
  }

  /** Every event, oldest first. */
  all(): StoredEvent[] {
    return [...this.rows.values()].map(toStoredEvent);
  }

  async enqueue(events: readonly NewEvent[], executor?: SqlExecutor): Promise<string[]> {
    if (executor !== undefined)
      throw invalid('tx cannot be used with the in-memory store: leave it out, or use PostgreSQL');
    const now = this.now();
    const fresh = new Map<string, Row>();
    // All of them are made before the first is kept: one that cannot be stored takes the others with it.
    for (const event of events) {
      const id = idOf(event.id);
      if (!this.rows.has(id) && !fresh.has(id))
        fresh.set(id, newRow(id, event, now, this.sequence++));
    }
    for (const [id, row] of fresh) this.rows.set(id, row);
    return [...fresh.keys()];
  }

  async claim(request: ClaimRequest): Promise<ClaimedEvent[]> {
    const now = this.now();
    return this.take(
      request,
      ({ status, scheduledAt }) => status === 'PENDING' && scheduledAt <= now,
      (row) => row.scheduledAt,
    );
  }

  async claimOthers(
    request: ClaimRequest & { otherThan: readonly string[] },
  ): Promise<ClaimedEvent[]> {
    const now = this.now();
    const isDue = (row: Row): boolean => row.status === 'PENDING' && row.scheduledAt <= now;
    const types = new Set([...this.rows.values()].filter(isDue).map(({ eventType }) => eventType));
    for (const type of request.otherThan) types.delete(type);
    const share = Math.max(1, Math.floor(request.limit / types.size));
    return [...types].slice(0, request.limit).flatMap((type) =>
      this.take(
        { ...request, limit: share },
        (row) => row.eventType === type && isDue(row),
        (row) => row.scheduledAt,
      ),
    );
  }

  async reap(request: ClaimRequest): Promise<ClaimedEvent[]> {
    const now = this.now();
    return this.take(
      request,
      ({ leasedUntil }) => leasedUntil !== null && leasedUntil <= now,
      (row) => row.leasedUntil ?? 0,
    );
  }

  async settle(settlements: readonly Settlement[]): Promise<string[]> {
    const now = this.now();
    return settlements.flatMap((settlement) => {
      const row = this.held(settlement);
      if (row === undefined) return [];
      applySettlement(row, settlement, now);
      row.leaseToken = null;
      row.leasedUntil = null;
      return [row.id];
    });
  }

  async settleAndClaim(
    settlements: readonly Settlement[],
    claim: ClaimRequest | null,
  ): Promise<SettledAndClaimed> {
    const settled = new Set(await this.settle(settlements));
    const claimed = claim === null ? [] : await this.claim(claim);
    return { settled, claimed, lookedEverywhere: true };
  }

  async renew(leases: readonly Lease[], leaseMs: number): Promise<string[]> {
    const leasedUntil = this.now() + leaseMs;
    return leases.flatMap((lease) => {
      const row = this.held(lease);
      if (row === undefined) return [];
      row.leasedUntil = leasedUntil;
      return [row.id];
    });
  }

  async redrive(request: RedriveRequest): Promise<string[]> {
    const now = this.now();
    const rows = this.dead(request).slice(0, request.limit);
    for (const [position, row] of rows.entries()) {
      const life: PreviousLife = {
        retryCount: row.retryCount,
        lastError: row.lastError,
        failedAt: row.processedAt === null ? null : new Date(row.processedAt).toISOString(),
        redrivenAt: new Date(now).toISOString(),
      };
      row.previousLives = [...row.previousLives.slice(-19), life];
      row.status = 'PENDING';
      row.retryCount = 0;
      row.scheduledAt = now + request.firstDelayMs + position * request.spacingMs;
      row.processedAt = null;
      row.unheardSince = null;
    }
    return rows.map(({ id }) => id);
  }

  async discard(request: DeadLetterFilter & { limit: number }): Promise<string[]> {
    return this.delete(this.dead(request).slice(0, request.limit));
  }

  async prune({ status, olderThanMs, limit }: PruneRequest): Promise<number> {
    const before = this.now() - olderThanMs;
    const old = [...this.rows.values()]
      .filter((row) => row.status === status && (row.processedAt ?? Infinity) < before)
      .toSorted(byCursor);
    return this.delete(old.slice(0, limit)).length;
  }

  async deadLetters(request: DeadLetterPageRequest): Promise<DeadLetterPage> {
    const after = readCursor(request.after);
    const rows = this.dead(request)
      .toReversed()
      .filter((row) => after === undefined || cursorOf(row) < after);
    return pageOf(rows, request.limit, toDeadLetter, cursorOf);
  }

  async countDeadLetters(filter: DeadLetterFilter): Promise<number> {
    return this.dead(filter).length;
  }

  async list({ state, eventType, limit, after }: EventPageRequest): Promise<EventPage> {
    const now = this.now();
    const from = readCursor(after);
    const rows = [...this.rows.values()]
      .filter(
        (row) =>
          stateOf(row, now) === state &&
          (eventType === undefined || row.eventType === eventType) &&
          (from === undefined || dueCursorOf(row) > from),
      )
      .toSorted((a, b) => (dueCursorOf(a) < dueCursorOf(b) ? -1 : 1));
    return pageOf(rows, limit, toListed, dueCursorOf);
  }

  async find(id: string): Promise<StoredEvent | null> {
    const row = this.rows.get(idOf(id));
    return row === undefined ? null : toStoredEvent(row);
  }

  async stats(): Promise<OutboxStats> {
    const now = this.now();
    const rows = [...this.rows.values()];
    const pending = rows.filter(({ status }) => status === 'PENDING');
    const due = pending.filter(({ scheduledAt }) => scheduledAt <= now);
    const unheard = Map.groupBy(
      pending.filter(({ unheardSince }) => unheardSince !== null),
      ({ eventType }) => eventType,
    );
    const count = (status: OutboxEventStatus): number =>
      rows.filter((row) => row.status === status).length;
    return {
      due: due.length,
      scheduled: pending.length - due.length,
      processing: count('PROCESSING'),
      failed: count('FAILED'),
      completedEstimate: count('COMPLETED'),
      oldestDueAgeMs:
        due.length === 0 ? null : now - Math.min(...due.map(({ scheduledAt }) => scheduledAt)),
      unheard: Object.fromEntries([...unheard].map(([type, waiting]) => [type, waiting.length])),
    };
  }

  async check(): Promise<void> {}

  async close(): Promise<void> {}

  private now(): number {
    return Date.now() + this.offsetMs;
  }

  private take(
    { limit, leaseMs }: ClaimRequest,
    wanted: (row: Row) => boolean,
    due: (row: Row) => number,
  ): ClaimedEvent[] {
    const now = this.now();
    const leaseToken = randomUUID();
    const rows = [...this.rows.values()]
      .filter(wanted)
      .toSorted((a, b) => due(a) - due(b) || a.sequence - b.sequence);
    return rows.slice(0, limit).map((row) => {
      row.status = 'PROCESSING';
      row.leaseToken = leaseToken;
      row.leasedUntil = now + leaseMs;
      return {
        id: row.id,
        leaseToken,
        eventType: row.eventType,
        payload: parse(row.payload),
        metadata: parse(row.metadata),
        retryCount: row.retryCount,
        acknowledgedBy: row.acknowledgedBy,
        scheduledAt: new Date(row.scheduledAt),
        createdAt: new Date(row.createdAt),
        unheardSince: dateOrNull(row.unheardSince),
        claimedAt: new Date(now),
      };
    });
  }

  private held({ id, leaseToken }: Lease): Row | undefined {
    const row = this.rows.get(idOf(id));
    return row?.leaseToken === leaseToken ? row : undefined;
  }

  /** Dead letters that match, longest dead first. */
  private dead({ ids, eventType, matching, failedAfter, failedBefore }: DeadLetterFilter): Row[] {
    const wanted = ids && new Set(ids.map(idOf));
    const text = matching?.toLowerCase();
    return [...this.rows.values()]
      .filter(
        (row) =>
          row.status === 'FAILED' &&
          (wanted === undefined || wanted.has(row.id)) &&
          (eventType === undefined || row.eventType === eventType) &&
          (text === undefined ||
            row.eventType.toLowerCase().includes(text) ||
            row.lastError?.toLowerCase().includes(text) === true) &&
          (failedAfter === undefined || (row.processedAt ?? 0) >= failedAfter.getTime()) &&
          (failedBefore === undefined || (row.processedAt ?? 0) < failedBefore.getTime()),
      )
      .toSorted(byCursor);
  }

  private delete(rows: readonly Row[]): string[] {
    for (const { id } of rows) this.rows.delete(id);
    return rows.map(({ id }) => id);
  }
}

/** A UUID in its usual form: PostgreSQL knows one in upper case as the same. */
function idOf(id: string): string {
  return id.toLowerCase();
}

function newRow(id: string, event: NewEvent, now: number, sequence: number): Row {
  return {
    id,
    eventType: event.eventType,
    payload: JSON.stringify(event.payload),
    metadata: JSON.stringify(event.metadata),
    createdAt: now,
    sequence,
    status: 'PENDING',
    retryCount: 0,
    lastError: null,
    scheduledAt: event.scheduledAt?.getTime() ?? now + (event.delayMs ?? 0),
    processedAt: null,
    acknowledgedBy: [],
    leaseToken: null,
    leasedUntil: null,
    unheardSince: null,
    previousLives: [],
  };
}

function applySettlement(row: Row, settlement: Settlement, now: number): void {
  switch (settlement.outcome) {
    case 'completed':
      row.status = 'COMPLETED';
      row.processedAt = now;
      row.unheardSince = null;
      return;
    case 'retry':
      applyFailure(row, settlement);
      row.status = 'PENDING';
      row.scheduledAt = now + settlement.delayMs;
      return;
    case 'failed':
      applyFailure(row, settlement);
      row.status = 'FAILED';
      row.processedAt = now;
      return;
    case 'unheard':
      row.status = 'PENDING';
      row.scheduledAt = now + settlement.delayMs;
      row.unheardSince ??= now;
      return;
    case 'released':
      row.status = 'PENDING';
      row.acknowledgedBy = settlement.acknowledgedBy ?? row.acknowledgedBy;
  }
}

function applyFailure(
  row: Row,
  failure: { retryCount: number; lastError: string; acknowledgedBy: readonly string[] },
): void {
  row.retryCount = failure.retryCount;
  row.lastError = failure.lastError;
  row.acknowledgedBy = failure.acknowledgedBy;
  row.unheardSince = null;
}

function cursorOf(row: Row): string {
  return cursorAt(row.processedAt ?? 0, row);
}

function dueCursorOf(row: Row): string {
  return cursorAt(row.scheduledAt, row);
}

// Fixed width, so that text compares as the pair (time, sequence) does.
function cursorAt(time: number, { sequence }: Row): string {
  return `${String(time).padStart(15, '0')}-${String(sequence).padStart(12, '0')}`;
}

function pageOf<Item>(
  rows: readonly Row[],
  limit: number,
  toItem: (row: Row) => Item,
  cursorOfRow: (row: Row) => string,
): { items: Item[]; next: string | null } {
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  return {
    items: page.map(toItem),
    next: rows.length > page.length && last !== undefined ? cursorOfRow(last) : null,
  };
}

function stateOf(row: Row, now: number): EventPageRequest['state'] | undefined {
  if (row.status === 'PROCESSING') return 'processing';
  if (row.status !== 'PENDING') return undefined;
  return row.scheduledAt <= now ? 'due' : 'scheduled';
}

function byCursor(a: Row, b: Row): number {
  return cursorOf(a) < cursorOf(b) ? -1 : 1;
}

function readCursor(cursor: string | undefined): string | undefined {
  if (cursor === undefined || /^\d{15}-\d{12}$/.test(cursor)) return cursor;
  throw invalid(`after must be the "next" of an earlier page, got ${JSON.stringify(cursor)}`);
}

function toDeadLetter(row: Row): DeadLetter {
  return { ...toHistory(row), failedAt: new Date(row.processedAt ?? 0) };
}

function toStoredEvent(row: Row): StoredEvent {
  return { ...toHistory(row), ...toListed(row), processedAt: dateOrNull(row.processedAt) };
}

function toListed(row: Row): ListedEvent {
  return {
    id: row.id,
    eventType: row.eventType,
    status: row.status,
    retryCount: row.retryCount,
    lastError: row.lastError,
    acknowledgedBy: row.acknowledgedBy,
    scheduledAt: new Date(row.scheduledAt),
    createdAt: new Date(row.createdAt),
    leasedUntil: dateOrNull(row.leasedUntil),
    unheardSince: dateOrNull(row.unheardSince),
  };
}

function dateOrNull(time: number | null): Date | null {
  return time === null ? null : new Date(time);
}

function toHistory(row: Row): Omit<DeadLetter, 'failedAt'> {
  return {
    id: row.id,
    eventType: row.eventType,
    payload: parse(row.payload),
    metadata: parse(row.metadata),
    retryCount: row.retryCount,
    lastError: row.lastError,
    acknowledgedBy: row.acknowledgedBy,
    createdAt: new Date(row.createdAt),
    previousLives: row.previousLives,
  };
}

function parse(json: string): OutboxPayload {
  return JSON.parse(json) as OutboxPayload;
}
