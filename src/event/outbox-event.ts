import { randomUUID } from 'node:crypto';
import { OutboxError } from './outbox-error.js';
import type { OutboxPayload } from './payload.js';
import { DEFAULT_RETRY_POLICY, retryDelayMs, type RetryPolicy } from './retry-policy.js';

/**
 * The four states of an event, and what a crash leaves behind in each.
 *
 * - `PENDING`: waits for `scheduledAt`. In: enqueue, a failure with attempts left, release, redrive. A crash changes nothing.
 * - `PROCESSING`: claimed by a relay under a lease. A crash leaves the row here until the lease has run out and the
 *   reaper counts it as a failed attempt.
 * - `COMPLETED`: every listener succeeded. Out: prune.
 * - `FAILED`: a dead letter: attempts exhausted, or a listener said "never retry this". Out: redrive, discard, prune.
 */
export type OutboxEventStatus = 'PENDING' | 'PROCESSING' | 'COMPLETED' | 'FAILED';

/** One earlier life of an event, written when it is redriven. */
export interface PreviousLife {
  /** Failed attempts of that life. */
  readonly retryCount: number;
  readonly lastError: string | null;
  /** ISO 8601. */
  readonly failedAt: string | null;
  /** ISO 8601. */
  readonly redrivenAt: string;
}

export interface OutboxEventProps {
  readonly id: string;
  readonly eventType: string;
  readonly payload: OutboxPayload;
  readonly metadata?: OutboxPayload;
  readonly status?: OutboxEventStatus;
  readonly retryCount?: number;
  readonly lastError?: string | null;
  /** `null` until the event is stored: the database's clock says when. */
  readonly scheduledAt?: Date | null;
  readonly processedAt?: Date | null;
  readonly createdAt?: Date | null;
  /** Names (`ClassName.method`) of listeners that have succeeded; they are not called again. */
  readonly acknowledgedBy?: readonly string[];
  /** Since when the event has been due without anybody listening to its type. */
  readonly unheardSince?: Date | null;
}

export interface FailureOptions {
  /** Default: the seed's rule, 5 attempts and 2, 4, 8, 16 minutes between them. */
  readonly policy?: RetryPolicy;
  /** `false` if no retry can help ("never retry this"). Default `true`. */
  readonly retryable?: boolean;
  /** When it failed, by the database's clock. Default: the latest moment the event knows of. */
  readonly now?: Date;
  /** 0 to 1, for the policy's jitter. Default 0.5, the middle. */
  readonly random?: number;
}

/**
 * An event and the rules it lives by. Pure: it reads no clock and no database. The decisions are made here, the
 * time they count from is the database's.
 *
 * The rule that matters most: **what can be retried never dies; only what is exhausted is set aside.**
 */
export class OutboxEvent {
  private readonly props: {
    -readonly [K in keyof Required<OutboxEventProps>]: Required<OutboxEventProps>[K];
  };
  private delayMs: number | null = null;

  private constructor(props: OutboxEventProps) {
    // Not `{ …defaults, ...props }`: a driver's `undefined` or `null` would take the place of a default.
    this.props = {
      id: props.id,
      eventType: props.eventType,
      payload: props.payload,
      metadata: props.metadata ?? {},
      status: props.status ?? 'PENDING',
      retryCount: props.retryCount ?? 0,
      lastError: props.lastError ?? null,
      scheduledAt: props.scheduledAt ?? null,
      processedAt: props.processedAt ?? null,
      createdAt: props.createdAt ?? null,
      acknowledgedBy: props.acknowledgedBy ?? [],
      unheardSince: props.unheardSince ?? null,
    };
  }

  /** A new event, `PENDING`, not stored yet. */
  static create(props: {
    eventType: string;
    payload: OutboxPayload;
    metadata?: OutboxPayload;
    id?: string;
  }): OutboxEvent {
    return new OutboxEvent({
      id: props.id ?? randomUUID(),
      eventType: props.eventType,
      payload: props.payload,
      metadata: props.metadata ?? {},
    });
  }

  /** An event as it was stored. */
  static reconstitute(props: OutboxEventProps): OutboxEvent {
    return new OutboxEvent(props);
  }

  /** `PENDING` → `PROCESSING`. @throws OutboxError `INVALID_TRANSITION` */
  markAsProcessing(): void {
    this.begin('be processed', 'PENDING');
    this.props.status = 'PROCESSING';
  }

  /** → `COMPLETED`. @throws OutboxError `INVALID_TRANSITION` on a dead letter (redrive it first) */
  markAsCompleted(now: Date | null = this.latestKnownTime()): void {
    this.begin('be completed', 'PENDING', 'PROCESSING');
    this.props.status = 'COMPLETED';
    this.props.processedAt = now;
    this.props.unheardSince = null;
  }

  /**
   * Counts the failure first and judges afterwards: with 5 attempts allowed, the 5th failure is `FAILED`; before
   * that the event is `PENDING` again, later. @throws OutboxError `INVALID_TRANSITION` on a finished event
   */
  markAsFailed(error: string, options: FailureOptions = {}): void {
    this.begin('fail', 'PENDING', 'PROCESSING');
    const {
      policy = DEFAULT_RETRY_POLICY,
      retryable = true,
      now = this.latestKnownTime(),
      random = 0.5,
    } = options;
    this.props.retryCount += 1;
    this.props.lastError = error;
    this.props.unheardSince = null;

    if (retryable && this.isRetryable(policy.maxRetries)) {
      this.delayMs = retryDelayMs(policy, this.props.retryCount, random);
      this.props.scheduledAt = now && new Date(now.getTime() + this.delayMs);
      this.props.status = 'PENDING';
    } else {
      this.props.processedAt = now;
      this.props.status = 'FAILED';
    }
  }

  /**
   * Nobody in this process listens to the event's type: neither failed nor done. Back to `PENDING` for `retryInMs`,
   * without spending an attempt (a rolling deploy must not burn retries); `FAILED` once that has lasted `graceMs`.
   */
  markAsUnheard(now: Date, { retryInMs, graceMs }: { retryInMs: number; graceMs: number }): void {
    this.begin('go unheard', 'PENDING', 'PROCESSING');
    this.props.unheardSince ??= now;
    const unheardMs = now.getTime() - this.props.unheardSince.getTime();
    if (unheardMs < graceMs) {
      this.delayMs = retryInMs;
      this.props.scheduledAt = new Date(now.getTime() + retryInMs);
      this.props.status = 'PENDING';
    } else {
      this.props.lastError = `nobody has listened to '${this.props.eventType}' since ${this.props.unheardSince.toISOString()}`;
      this.props.processedAt = now;
      this.props.status = 'FAILED';
    }
  }

  /** Whether another attempt is allowed: fewer failures than `maxRetries`. */
  isRetryable(maxRetries: number = DEFAULT_RETRY_POLICY.maxRetries): boolean {
    return this.props.retryCount < maxRetries;
  }

  /** A listener has succeeded and is not called again for this event. */
  acknowledge(listeners: readonly string[]): void {
    this.props.acknowledgedBy = [...new Set([...this.props.acknowledgedBy, ...listeners])];
  }

  /** `FAILED` → `PENDING` with all its attempts before it: a second life. @throws OutboxError `INVALID_TRANSITION` */
  redrive(now: Date | null = this.latestKnownTime()): void {
    this.begin('be redriven', 'FAILED');
    this.props.status = 'PENDING';
    this.props.retryCount = 0;
    this.props.scheduledAt = now;
    this.props.processedAt = null;
    this.props.unheardSince = null;
  }

  getId(): string {
    return this.props.id;
  }

  getEventType(): string {
    return this.props.eventType;
  }

  getPayload(): OutboxPayload {
    return this.props.payload;
  }

  getMetadata(): OutboxPayload {
    return this.props.metadata;
  }

  getStatus(): OutboxEventStatus {
    return this.props.status;
  }

  /** Failed attempts so far. */
  getRetryCount(): number {
    return this.props.retryCount;
  }

  getLastError(): string | null {
    return this.props.lastError;
  }

  /** When it is due; `null` until it is stored. */
  getScheduledAt(): Date | null {
    return this.props.scheduledAt;
  }

  /** When it was completed or set aside. */
  getProcessedAt(): Date | null {
    return this.props.processedAt;
  }

  /** When it was stored; `null` until then. */
  getCreatedAt(): Date | null {
    return this.props.createdAt;
  }

  getAcknowledgedBy(): readonly string[] {
    return this.props.acknowledgedBy;
  }

  getUnheardSince(): Date | null {
    return this.props.unheardSince;
  }

  /** The wait decided by the last transition, in milliseconds from the database's now; `null` if there is none. */
  getDelayMs(): number | null {
    return this.delayMs;
  }

  private latestKnownTime(): Date | null {
    const { scheduledAt, createdAt } = this.props;
    if (scheduledAt === null || createdAt === null) return scheduledAt ?? createdAt;
    return scheduledAt > createdAt ? scheduledAt : createdAt;
  }

  /** How every transition begins: only from these states, and the wait that the last one decided is over. */
  private begin(step: string, ...allowed: OutboxEventStatus[]): void {
    if (!allowed.includes(this.props.status)) {
      throw new OutboxError(
        'INVALID_TRANSITION',
        `event ${this.props.id} is ${this.props.status} and cannot ${step}: it must be ${allowed.join(' or ')}`,
      );
    }
    this.delayMs = null;
  }
}
