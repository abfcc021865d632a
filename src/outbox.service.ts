import { Injectable, Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import type { Emitter } from './delivery/emitter.js';
import type { PayloadOf } from './delivery/outbox-context.js';
import { errorText } from './event/error-text.js';
import { assertEventType } from './event/event-type.js';
import { invalid } from './event/outbox-error.js';
import {
  assertNoReservedKeys,
  serializePayload,
  toStorable,
  type OutboxPayload,
} from './event/payload.js';
import type { ResolvedOptions } from './outbox-options.js';
import type { Pruned, Pruner } from './relay/pruner.js';
import type { Pump } from './relay/pump.js';
import type { Relay } from './relay/relay.js';
import type { NewEvent, OutboxStats, OutboxStore } from './store/outbox-store.js';
import { executorOf, type OutboxTransaction } from './transaction/executor-of.js';
import { onTransactionEnd } from './transaction/transaction-end.js';

export interface EnqueueOptions {
  /** The caller's open transaction: the event is part of it, and any failure is thrown. */
  readonly tx?: OutboxTransaction | undefined;
  /** Not before this moment. */
  readonly scheduledAt?: Date | undefined;
  /** Not before so many milliseconds from now, by the database's clock. */
  readonly delayMs?: number | undefined;
  /** A UUID that makes the call repeatable: the second time nothing is written. */
  readonly id?: string | undefined;
}

export interface EnqueueManyItem<EventType extends string = string> extends Omit<
  EnqueueOptions,
  'tx'
> {
  readonly eventType: EventType;
  readonly payload: PayloadOf<EventType>;
  readonly metadata?: OutboxPayload | undefined;
}

export interface Enqueued {
  readonly id: string;
  /** `false`: the store failed, and the event was emitted in memory, once and without guarantee. */
  readonly stored: boolean;
  /** `true`: an event with this id was there already, and nothing was written. */
  readonly duplicate?: true;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const LARGEST_PASS = 10_000;

/** What the service is made of; the module puts it together. */
export interface OutboxParts {
  readonly store: OutboxStore;
  readonly emitter: Emitter;
  readonly relay: Relay;
  readonly pump: Pump;
  readonly pruner: Pruner;
  readonly options: ResolvedOptions;
}

/** Stores events, and does by hand what the relay does by itself. */
@Injectable()
export class OutboxService {
  private readonly logger = new Logger('Outbox');

  constructor(private readonly parts: OutboxParts) {}

  /**
   * Stores an event, to be delivered to the `@OnEvent` methods of its type until each has succeeded.
   *
   * ```ts
   * await outbox.enqueue('quote_request.created', { quoteRequestId }, {}, { tx: client });
   * ```
   *
   * With `tx` the event is part of the caller's transaction: it commits or rolls back with the data, and any failure
   * is thrown. Without, and if the store fails, it is emitted in memory as a last resort (`stored: false`; the
   * payload carries `_outboxFailed: true`), unless `onStoreFailure: 'throw'`.
   *
   * @param eventType 1 to 255 characters
   * @param payload a plain JSON object of at most `maxPayloadBytes`
   * @param metadata a plain JSON object, handed to listeners as `_outbox.metadata`
   * @throws OutboxError `INVALID_ARGUMENT`, before anything is written
   */
  async enqueue<EventType extends string>(
    eventType: EventType,
    payload: PayloadOf<EventType>,
    metadata: OutboxPayload = {},
    options: EnqueueOptions = {},
  ): Promise<Enqueued> {
    const { tx, ...when } = options;
    const [enqueued] = await this.store(
      [{ ...when, eventType, payload, metadata }],
      tx,
      'tx' in options,
    );
    return enqueued as Enqueued;
  }

  /**
   * Stores many events in one statement, all or nothing. Answers in the order of the input.
   * @throws OutboxError `INVALID_ARGUMENT` that names the event, before anything is written
   */
  async enqueueMany(
    events: readonly EnqueueManyItem[],
    options: Pick<EnqueueOptions, 'tx'> = {},
  ): Promise<Enqueued[]> {
    if (!Array.isArray(events))
      throw invalid('events must be an array of { eventType, payload, … }');
    if (events.length === 0) return [];
    return this.store(events as readonly EnqueueManyItem[], options.tx, 'tx' in options);
  }

  /**
   * One pass of the relay by hand: claims at most `limit` due events, delivers and settles them.
   * @returns how many it handled, whatever became of them
   */
  async processPending(limit: number = this.parts.options.relay.batchSize): Promise<number> {
    if (!Number.isInteger(limit) || limit < 1 || limit > LARGEST_PASS) {
      throw invalid(`limit must be a whole number from 1 to ${LARGEST_PASS}, got ${String(limit)}`);
    }
    return this.parts.relay.pass(limit);
  }

  /** Counts a failed attempt for every event whose lease has run out. The relay does it every 15 seconds. @returns how many */
  async reap(): Promise<number> {
    let total = 0;
    for (let reaped = 1; reaped > 0; total += reaped) reaped = await this.parts.relay.reap();
    return total;
  }

  /**
   * Deletes events past their retention: COMPLETED after `retention.completedMs`, FAILED after `retention.failedMs`.
   * Never what can still be retried, whatever its count. The relay does it every hour.
   */
  async deleteProcessed(): Promise<Pruned> {
    return this.parts.pruner.prune();
  }

  /** Counts by state and the age of the oldest due event, cheap enough to ask every few seconds. */
  async stats(): Promise<OutboxStats> {
    return this.parts.store.stats();
  }

  private async store(
    items: readonly EnqueueManyItem[],
    tx: OutboxTransaction | undefined,
    txGiven: boolean,
  ): Promise<Enqueued[]> {
    const events = items.map((item, index) =>
      this.toNewEvent(item, items.length === 1 ? '' : `events[${index}].`),
    );
    // `{ tx: undefined }` is a slip that would take the event out of the transaction without a word.
    if (txGiven && tx === undefined)
      throw invalid('tx is undefined: pass the open transaction, or leave tx out');
    const stored =
      tx === undefined ? await this.storeOrEmit(events) : await this.storeWithin(tx, events);
    if (stored === undefined) return events.map(({ id }) => ({ id, stored: false }));
    return events.map(({ id }) =>
      stored.delete(id) ? { id, stored: true } : { id, stored: true, duplicate: true },
    );
  }

  private async storeWithin(tx: OutboxTransaction, events: NewEvent[]): Promise<Set<string>> {
    const stored = await this.parts.store.enqueue(events, await executorOf(tx));
    const { pump } = this.parts;
    if (!onTransactionEnd(tx, pump.wake)) pump.wakeAfterCommit();
    return new Set(stored);
  }

  private async storeOrEmit(events: NewEvent[]): Promise<Set<string> | undefined> {
    try {
      const stored = await this.parts.store.enqueue(events);
      this.wakeFor(events);
      return new Set(stored);
    } catch (error) {
      if (this.parts.options.onStoreFailure === 'throw') throw error;
      this.emitWithoutGuarantee(events, error);
      return undefined;
    }
  }

  private wakeFor(events: readonly NewEvent[]): void {
    const delays = events.map(({ scheduledAt, delayMs }) =>
      scheduledAt === undefined ? (delayMs ?? 0) : scheduledAt.getTime() - Date.now(),
    );
    const first = delays.reduce((a, b) => Math.min(a, b));
    if (first <= 0) this.parts.pump.wake();
    else this.parts.pump.wakeIn(first);
  }

  private emitWithoutGuarantee(events: readonly NewEvent[], cause: unknown): void {
    for (const { id, eventType, payload, metadata } of events) {
      this.logger.error(
        `could not store ${eventType} ${id}, emitting it in memory without any guarantee: ${errorText(cause)}`,
      );
      try {
        this.parts.emitter.emit(eventType, {
          ...payload,
          _outboxFailed: true,
          _outbox: { id, eventType, metadata },
        });
      } catch (error) {
        this.logger.error(
          `${eventType} ${id} is lost: a listener threw while it was emitted in memory: ${errorText(error)}`,
        );
      }
    }
  }

  private toNewEvent(item: EnqueueManyItem, path: string): NewEvent {
    const { eventType, payload, metadata = {}, scheduledAt, delayMs, id = randomUUID() } = item;
    try {
      assertEventType(eventType);
      const storable = toStorable('payload', payload);
      assertNoReservedKeys(storable);
      serializePayload(storable, this.parts.options.maxPayloadBytes);
      if (typeof id !== 'string' || !UUID.test(id))
        throw invalid(`id must be a UUID, got ${JSON.stringify(id)}`);
      assertWhen(scheduledAt, delayMs);
      return {
        id: id.toLowerCase(),
        eventType,
        payload: storable,
        metadata: toStorable('metadata', metadata),
        scheduledAt,
        delayMs,
      };
    } catch (error) {
      if (path !== '' && error instanceof Error) error.message = `${path}${error.message}`;
      throw error;
    }
  }
}

function assertWhen(scheduledAt: unknown, delayMs: unknown): void {
  if (scheduledAt !== undefined && delayMs !== undefined)
    throw invalid('scheduledAt and delayMs exclude each other: give one');
  if (
    scheduledAt !== undefined &&
    !(scheduledAt instanceof Date && !Number.isNaN(scheduledAt.getTime()))
  ) {
    throw invalid(`scheduledAt must be a valid Date, got ${shown(scheduledAt)}`);
  }
  if (
    delayMs !== undefined &&
    !(typeof delayMs === 'number' && delayMs >= 0 && delayMs <= 100 * 365 * 86_400_000)
  ) {
    throw invalid(`delayMs must be a number of milliseconds, 0 or more, got ${shown(delayMs)}`);
  }
}

function shown(value: unknown): string {
  return typeof value === 'string'
    ? JSON.stringify(value)
    : typeof value === 'number'
      ? String(value)
      : `a ${typeof value}`;
}
