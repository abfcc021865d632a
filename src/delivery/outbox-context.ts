import type { OutboxPayload } from '../event/payload.js';

/** What a listener finds under `_outbox` in its payload. */
export interface OutboxContext {
  /** The event's id: the same in every attempt, so it serves as an idempotency key. */
  readonly id: string;
  readonly eventType: string;
  /** 1 for the first attempt of this life of the event. */
  readonly attempt: number;
  /** Failed attempts before this one. */
  readonly retryCount: number;
  readonly scheduledAt: Date;
  readonly createdAt: Date;
  readonly metadata: OutboxPayload;
  /**
   * Aborted when the listener has run out of time, the lease was lost, or the process stops: pass it to `fetch` and
   * the like. Not enumerable, so that a payload handed on as JSON does not carry it.
   */
  readonly signal: AbortSignal;
}

/**
 * Maps event types to their payloads. Extend it, and `enqueue` and listeners agree at compile time:
 *
 * ```ts
 * declare module 'nestjs-outbox-relay' {
 *   interface OutboxEventMap {
 *     'quote_request.created': { quoteRequestId: string };
 *   }
 * }
 * ```
 */
// eslint-disable-next-line typescript/no-empty-interface -- empty on purpose: users add to it
export interface OutboxEventMap {}

/** The payload of an event type: as declared in {@link OutboxEventMap}, or any JSON object. */
export type PayloadOf<EventType extends string> = EventType extends keyof OutboxEventMap
  ? OutboxEventMap[EventType]
  : OutboxPayload;

/**
 * What the listener of an event type receives.
 *
 * ```ts
 * @OnEvent('quote_request.created')
 * async notify(event: Delivered<'quote_request.created'>) { … }
 * ```
 */
export type Delivered<EventType extends string = string> = PayloadOf<EventType> & {
  readonly _outbox: OutboxContext;
  /** The event could not be stored: this is its only attempt. */
  readonly _outboxFailed?: true;
};
