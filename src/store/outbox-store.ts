import type { OutboxEventStatus, PreviousLife } from '../event/outbox-event.js';
import type { OutboxPayload } from '../event/payload.js';
import type { ActivityStore } from './activity-store.js';
import type { SentinelStore } from './sentinel-store.js';

/** An event on its way into the store. */
export interface NewEvent {
  readonly id: string;
  readonly eventType: string;
  readonly payload: OutboxPayload;
  readonly metadata: OutboxPayload;
  /** Due at this moment… */
  readonly scheduledAt?: Date | undefined;
  /** …or this many milliseconds after the database's now. Neither: due at once. */
  readonly delayMs?: number | undefined;
}

/**
 * Runs SQL inside the caller's open transaction, and only there. A `pg` client is one as it is.
 */
export interface SqlExecutor {
  /**
   * @param text one `SELECT` of one value that is never null, e.g. the call of a function; it may be put into another
   * @returns one row; what its column is called is the tool's affair
   */
  query(text: string, values: unknown[]): Promise<{ rows: unknown[] }>;
}

/** Names a claimed row: whoever does not hold its token changes nothing. */
export interface Lease {
  readonly id: string;
  readonly leaseToken: string;
}

/** A row in `PROCESSING`, held under a lease. */
export interface ClaimedEvent extends Lease {
  readonly eventType: string;
  readonly payload: OutboxPayload;
  readonly metadata: OutboxPayload;
  readonly retryCount: number;
  readonly acknowledgedBy: readonly string[];
  readonly scheduledAt: Date;
  readonly createdAt: Date;
  readonly unheardSince: Date | null;
  /** The database's clock at the claim. */
  readonly claimedAt: Date;
}

export interface ClaimRequest {
  /** At most so many events, oldest due first. */
  readonly limit: number;
  /** How long the lease lasts unless renewed, in milliseconds. */
  readonly leaseMs: number;
}

/**
 * What becomes of a claimed event. Decided by the entity; waits are relative, so that the database's clock alone
 * says when they end.
 */
export type Settlement = Lease &
  (
    | { readonly outcome: 'completed' }
    | {
        readonly outcome: 'retry';
        readonly retryCount: number;
        readonly lastError: string;
        readonly acknowledgedBy: readonly string[];
        readonly delayMs: number;
      }
    | {
        readonly outcome: 'failed';
        readonly retryCount: number;
        readonly lastError: string;
        readonly acknowledgedBy: readonly string[];
      }
    /** Nobody listens: back for later, no attempt spent. */
    | { readonly outcome: 'unheard'; readonly delayMs: number }
    /** Given back, no attempt spent: the relay stops. `acknowledgedBy`: listeners that had succeeded by then. */
    | { readonly outcome: 'released'; readonly acknowledgedBy?: readonly string[] }
  );

export interface SettledAndClaimed {
  /** Ids that were still held. */
  readonly settled: ReadonlySet<string>;
  readonly claimed: ClaimedEvent[];
  /** `false`: the claim took a shortcut and may have missed events; one a second later looks everywhere. */
  readonly lookedEverywhere: boolean;
}

/** Which dead letters are meant. Without any field: all of them. */
export interface DeadLetterFilter {
  readonly ids?: readonly string[] | undefined;
  readonly eventType?: string | undefined;
  /** Text within the event type or the last error, in upper or lower case. */
  readonly matching?: string | undefined;
  /** Set aside at or after this moment. */
  readonly failedAfter?: Date | undefined;
  /** Set aside before this moment. */
  readonly failedBefore?: Date | undefined;
}

export interface DeadLetter {
  readonly id: string;
  readonly eventType: string;
  readonly payload: OutboxPayload;
  readonly metadata: OutboxPayload;
  readonly retryCount: number;
  readonly lastError: string | null;
  readonly acknowledgedBy: readonly string[];
  readonly createdAt: Date;
  readonly failedAt: Date;
  /** Earlier lives, oldest first, the last 20. */
  readonly previousLives: readonly PreviousLife[];
}

/** An event in whatever state. */
export interface StoredEvent extends Omit<DeadLetter, 'failedAt'> {
  readonly status: OutboxEventStatus;
  readonly scheduledAt: Date;
  readonly processedAt: Date | null;
  /** While `PROCESSING`: until when its relay holds it. */
  readonly leasedUntil: Date | null;
  /** Since when it has been due without anybody listening to its type. */
  readonly unheardSince: Date | null;
}

/** An event of a list: without what may be large. */
export type ListedEvent = Omit<
  StoredEvent,
  'payload' | 'metadata' | 'previousLives' | 'processedAt'
>;

export interface EventPage {
  readonly items: readonly ListedEvent[];
  /** Pass it as `after` for the next page; `null` on the last. Stays right while rows come and go. */
  readonly next: string | null;
}

export interface EventPageRequest {
  /** `due` and `scheduled` are `PENDING`: what a relay would claim now, and what is for later. */
  readonly state: 'due' | 'scheduled' | 'processing';
  readonly eventType?: string | undefined;
  readonly limit: number;
  readonly after?: string | undefined;
}

export interface DeadLetterPage {
  readonly items: readonly DeadLetter[];
  /** Pass it as `after` for the next page; `null` on the last. Stays right while rows come and go. */
  readonly next: string | null;
}

export interface DeadLetterPageRequest extends DeadLetterFilter {
  readonly limit: number;
  readonly after?: string | undefined;
}

export interface RedriveRequest extends DeadLetterFilter {
  readonly limit: number;
  /** The first event is due after so many milliseconds… */
  readonly firstDelayMs: number;
  /** …and each further one so many after the one before. */
  readonly spacingMs: number;
}

export interface PruneRequest {
  readonly status: 'COMPLETED' | 'FAILED';
  /** Only rows that reached this status longer ago than this. */
  readonly olderThanMs: number;
  readonly limit: number;
}

export interface OutboxStats {
  /** Due now: what a relay would claim. */
  readonly due: number;
  /** `PENDING`, but for later: delayed, or waiting for a retry. */
  readonly scheduled: number;
  readonly processing: number;
  /** Dead letters. */
  readonly failed: number;
  /** An estimate from the planner's statistics (counting millions of rows is not for every few seconds); `null` if there are none yet. */
  readonly completedEstimate: number | null;
  /** How long the oldest due event has been due, in milliseconds; `null` if nothing is due. */
  readonly oldestDueAgeMs: number | null;
  /** Events that nobody has listened to so far, by type. */
  readonly unheard: Readonly<Record<string, number>>;
}

/**
 * Where events rest. The port, and its own DI token: `{ provide: OutboxStore, useClass: … }`.
 *
 * Every adapter passes the same conformance suite. The rules they share:
 * - the store's own clock decides what is due, expired or old;
 * - a change to a claimed row names its lease token; a stranger's changes nothing and is not an error;
 * - two callers never claim the same event.
 */
export abstract class OutboxStore {
  /** Where the sentinels of gates rest, if this store has a place for them. */
  readonly sentinels?: SentinelStore;

  /** Where relays report what they are and do, if this store has a place for that. */
  readonly activity?: ActivityStore;

  /**
   * Writes events in one statement, all or nothing. An id that is there already is left as it is.
   * @param executor the caller's open transaction; the rows are part of it
   * @returns the ids that were written
   */
  abstract enqueue(events: readonly NewEvent[], executor?: SqlExecutor): Promise<string[]>;

  /** Takes due events under a new lease, oldest due first. */
  abstract claim(request: ClaimRequest): Promise<ClaimedEvent[]>;

  /** @returns the ids that were still held and are settled now */
  abstract settle(settlements: readonly Settlement[]): Promise<string[]>;

  /**
   * Takes due events of every type but those in `otherThan`, an equal share of `limit` for each type, oldest due
   * first: so that a flood of one type does not make the others wait for its end.
   */
  abstract claimOthers(
    request: ClaimRequest & { readonly otherThan: readonly string[] },
  ): Promise<ClaimedEvent[]>;

  /**
   * {@link settle}, then {@link claim}: what a relay under load does all the time. Both happen or neither does.
   * @param claim `null`: settle only
   */
  abstract settleAndClaim(
    settlements: readonly Settlement[],
    claim: ClaimRequest | null,
  ): Promise<SettledAndClaimed>;

  /** Prolongs leases from the store's now. @returns the ids that are still held */
  abstract renew(leases: readonly Lease[], leaseMs: number): Promise<string[]>;

  /** Takes over events whose lease has run out: their relay is dead or cut off. They are claimed, not yet judged. */
  abstract reap(request: ClaimRequest): Promise<ClaimedEvent[]>;

  /** Gives dead letters a second life: `PENDING`, count 0, the first life kept in `previousLives`. @returns their ids */
  abstract redrive(request: RedriveRequest): Promise<string[]>;

  /** Deletes dead letters for good. @returns their ids */
  abstract discard(filter: DeadLetterFilter & { readonly limit: number }): Promise<string[]>;

  /** Deletes rows that are finished and old enough. @returns how many */
  abstract prune(request: PruneRequest): Promise<number>;

  /** Dead letters, newest first. */
  abstract deadLetters(request: DeadLetterPageRequest): Promise<DeadLetterPage>;

  abstract countDeadLetters(filter: DeadLetterFilter): Promise<number>;

  /** Events that are not finished, the one due first in front. */
  abstract list(request: EventPageRequest): Promise<EventPage>;

  abstract find(id: string): Promise<StoredEvent | null>;

  abstract stats(): Promise<OutboxStats>;

  /** Says whether the store is what this code needs. @throws OutboxError `SCHEMA_MISMATCH` with what to run */
  abstract check(): Promise<void>;

  /** Lets go of what the store opened itself. */
  abstract close(): Promise<void>;
}
