import { Injectable } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { DeliveryContext } from './delivery/delivery-context.js';
import type { Emitter } from './delivery/emitter.js';
import type { PayloadOf } from './delivery/outbox-context.js';
import { errorText } from './event/error-text.js';
import { assertEventType } from './event/event-type.js';
import { isEventId } from './event/event-id.js';
import { assertKnownKeys } from './event/known-keys.js';
import { assertMoment } from './event/moment.js';
import { invalid, OutboxError } from './event/outbox-error.js';
import {
  assertNoReservedKeys,
  assertPayloadSize,
  toStorable,
  type OutboxPayload,
} from './event/payload.js';
import { shown } from './event/shown.js';
import type { ResolvedOptions } from './outbox-options.js';
import { OutboxLogger } from './relay/outbox.logger.js';
import type { Pruned, Pruner } from './relay/pruner.js';
import type { Pump } from './relay/pump.js';
import type { Relay } from './relay/relay.js';
import type { NewEvent, OutboxStats, OutboxStore } from './store/outbox-store.js';
import type { SentinelStats } from './store/sentinel-store.js';
import type { Telemetry } from './telemetry/telemetry.js';
import { chosenTransaction, type TransactionChoice } from './transaction/chosen-transaction.js';
import type { OpenTransaction } from './transaction/transaction-tool.js';

export interface EnqueueOptions extends TransactionChoice {
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

const LARGEST_PASS = 10_000;
const ENQUEUE_KEYS = ['tx', 'scheduledAt', 'delayMs', 'id'];
const ITEM_KEYS = ['eventType', 'payload', 'metadata', 'scheduledAt', 'delayMs', 'id'];

export interface OutboxServiceStats extends OutboxStats {
  /** Gates of the `BootstrapPublisher`. */
  readonly gates: SentinelStats;
}

/** What the service is made of; the module puts it together. */
export interface OutboxParts {
  readonly store: OutboxStore;
  readonly emitter: Emitter;
  readonly relay: Relay;
  readonly pump: Pump;
  readonly pruner: Pruner;
  readonly options: ResolvedOptions;
  readonly telemetry: Telemetry;
}

/** Stores events, and does by hand what the relay does by itself. */
@Injectable()
export class OutboxService {
  private readonly logger = new OutboxLogger('Outbox');

  constructor(private readonly parts: OutboxParts) {}

  /**
   * Stores an event, to be delivered to the `@OnEvent` methods of its type until each has succeeded.
   *
   * ```ts
   * await outbox.enqueue('quote_request.created', { quoteRequestId }, {}, { tx: client });
   * ```
   *
   * With `tx` (or in the current transaction, if the module was told how to find it) the event is part of the
   * caller's transaction: it commits or rolls back with the data, and any failure is thrown. Without, and if the store
   * fails, it is emitted in memory as a last resort (`stored: false`; the payload carries `_outboxFailed: true`),
   * unless `onStoreFailure: 'throw'`, the event is for later, or the application is shutting down.
   *
   * @param eventType 1 to 255 characters
   * @param payload a plain JSON object of at most `maxPayloadBytes`
   * @param metadata a plain JSON object, handed to listeners as `_outbox.metadata`
   * @throws OutboxError `INVALID_ARGUMENT`, before anything is written; `SHUTTING_DOWN` if it could not be stored any more
   */
  async enqueue<EventType extends string>(
    eventType: EventType,
    payload: PayloadOf<EventType>,
    metadata: OutboxPayload = {},
    options: EnqueueOptions = {},
  ): Promise<Enqueued> {
    assertOptions(options, ENQUEUE_KEYS);
    assertNoOptionsIn(metadata);
    const { scheduledAt, delayMs, id } = options;
    const event = this.toNewEvent({ eventType, payload, metadata, scheduledAt, delayMs, id });
    const [enqueued] = await this.store([event], options);
    return enqueued as Enqueued;
  }

  /**
   * Stores many events in one statement, all or nothing. Answers in the order of the input.
   * @throws OutboxError `INVALID_ARGUMENT` that names the event, before anything is written
   */
  async enqueueMany<EventTypes extends readonly string[]>(
    events: { readonly [I in keyof EventTypes]: EnqueueManyItem<EventTypes[I]> },
    options: TransactionChoice = {},
  ): Promise<Enqueued[]> {
    if (!Array.isArray(events)) {
      throw invalid('events must be an array of { eventType, payload, … }');
    }
    assertOptions(options, ['tx']);
    // Array.from visits holes too.
    const items = Array.from(events as readonly EnqueueManyItem[]);
    return this.store(
      items.map((item, index) => this.toNewEventOfMany(item, index)),
      options,
    );
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
   * Never what can still be retried, whatever its count. Inbox rows after `retention.inboxMs`. The relay does it every
   * hour.
   */
  async deleteProcessed(): Promise<Pruned> {
    return this.parts.pruner.prune();
  }

  /**
   * Tells the relays that something may be due, after SQL of your own has enqueued (a database function, a trigger),
   * which nobody here can see. Returns at once. Without it the next tick finds the event, within 15 seconds.
   */
  wake(): void {
    this.parts.pump.wake();
  }

  /** Counts by state and the age of the oldest due event, cheap enough to ask every few seconds. */
  async stats(): Promise<OutboxServiceStats> {
    const { store } = this.parts;
    const [events, gates] = await Promise.all([store.stats(), store.sentinels?.stats()]);
    return { ...events, gates: gates ?? { failing: 0, closed: 0 } };
  }

  private async store(events: NewEvent[], choice: TransactionChoice): Promise<Enqueued[]> {
    const tx = await chosenTransaction(choice, this.parts.options.currentTransaction);
    if (events.length === 0) return [];
    const stored = await this.parts.telemetry.sending(events, (traced, failed) =>
      tx === undefined ? this.storeOrEmit(traced, failed) : this.storeWithin(tx, traced),
    );
    if (stored === undefined) return events.map(({ id }) => ({ id, stored: false }));
    return events.map(({ id }) =>
      stored.delete(id) ? { id, stored: true } : { id, stored: true, duplicate: true },
    );
  }

  private async storeWithin(
    tx: OpenTransaction,
    events: readonly NewEvent[],
  ): Promise<Set<string>> {
    const stored = await this.parts.store.enqueue(events, tx.executor);
    const { pump } = this.parts;
    if (!tx.onEnd(pump.wake)) pump.wakeAfterCommit();
    // What is due later than the end of the transaction.
    const first = firstDelayMs(events);
    if (first > 0) pump.wakeIn(first);
    return new Set(stored);
  }

  private async storeOrEmit(
    events: readonly NewEvent[],
    failed: (error: unknown) => void,
  ): Promise<Set<string> | undefined> {
    try {
      const stored = await this.parts.store.enqueue(events);
      this.wakeFor(events);
      return new Set(stored);
    } catch (error) {
      this.assertMayBeEmitted(events, error);
      failed(error);
      for (const event of events) void this.emitWithoutGuarantee(event, error);
      return undefined;
    }
  }

  private wakeFor(events: readonly NewEvent[]): void {
    const first = firstDelayMs(events);
    if (first <= 0) this.parts.pump.wake();
    else this.parts.pump.wakeIn(first);
  }

  private assertMayBeEmitted(events: readonly NewEvent[], cause: unknown): void {
    if (this.parts.relay.isStopping) {
      throw new OutboxError(
        'SHUTTING_DOWN',
        `the application is shutting down and the event could not be stored: ${errorText(cause)}`,
        { cause },
      );
    }
    // A reminder that comes days early is no last resort.
    if (this.parts.options.onStoreFailure === 'throw' || events.some(isForLater)) throw cause;
  }

  /** Never rejects: its listeners are nobody's business but theirs. */
  private async emitWithoutGuarantee(event: NewEvent, cause: unknown): Promise<void> {
    const { emitter } = this.parts;
    const { id, eventType, payload } = event;
    this.logger.error(
      `could not store ${eventType} ${id}, emitting it in memory without any guarantee: ${errorText(cause)}`,
    );
    if (emitter.listeners(eventType).length === 0) {
      this.logger.error(`${eventType} ${id} is lost: nobody listens to it in this process`);
      return;
    }
    const now = new Date();
    const context = new DeliveryContext(
      { ...event, retryCount: 0, scheduledAt: now, createdAt: now },
      new AbortController(),
    );
    const emit = (): Promise<unknown> =>
      emitter.emitAsync(eventType, { ...payload, _outbox: context, _outboxFailed: true });
    // One for all its listeners: nobody observes them here.
    const telemetry = this.parts.telemetry.delivering({ ...event, retryCount: 0 })?.begin();
    try {
      await (telemetry === undefined ? emit() : telemetry.run(emit));
      telemetry?.succeeded();
    } catch (error) {
      telemetry?.failed(error);
      this.logger.error(
        `${eventType} ${id} is lost to a listener that failed while it was emitted in memory: ${errorText(error)}`,
      );
    }
  }

  private toNewEventOfMany(item: unknown, index: number): NewEvent {
    const path = `events[${index}]`;
    if (typeof item !== 'object' || item === null) {
      throw invalid(`${path} must be an object { eventType, payload, … }, got ${shown(item)}`);
    }
    assertKnownKeys(`${path}.`, item, ITEM_KEYS);
    try {
      return this.toNewEvent(item as EnqueueManyItem);
    } catch (error) {
      if (error instanceof Error) error.message = `${path}.${error.message}`;
      throw error;
    }
  }

  private toNewEvent(item: EnqueueManyItem): NewEvent {
    const { eventType, payload, metadata = {}, scheduledAt, delayMs, id = randomUUID() } = item;
    assertEventType(eventType);
    const storable = toStorable('payload', payload);
    assertNoReservedKeys(storable);
    assertPayloadSize(storable, this.parts.options.maxPayloadBytes);
    if (!isEventId(id)) {
      throw invalid(`id must be a UUID, got ${shown(id)}`);
    }
    assertWhen(scheduledAt, delayMs);
    return {
      id: id.toLowerCase(),
      eventType,
      payload: storable,
      metadata: toStorable('metadata', metadata),
      scheduledAt,
      delayMs,
    };
  }
}

function assertOptions(options: unknown, known: readonly string[]): asserts options is object {
  if (typeof options !== 'object' || options === null) {
    throw invalid(`options must be an object { ${known.join(', ')} }, got ${shown(options)}`);
  }
  assertKnownKeys('', options, known);
}

/** How long until the first of them is due; 0 or less if one is. */
function firstDelayMs(events: readonly NewEvent[]): number {
  const delays = events.map(({ scheduledAt, delayMs }) =>
    scheduledAt === undefined ? (delayMs ?? 0) : scheduledAt.getTime() - Date.now(),
  );
  return delays.reduce((a, b) => Math.min(a, b));
}

// `enqueue(type, payload, { tx })` is an easy slip, and would take the event out of the transaction without a word.
function assertNoOptionsIn(metadata: object | null): void {
  const option = ['tx', 'delayMs', 'scheduledAt'].find((key) => Object.hasOwn(metadata ?? {}, key));
  if (option === undefined) return;
  throw invalid(
    `metadata.${option} is an option: options are the fourth argument, enqueue(eventType, payload, {}, { ${option} })`,
  );
}

function isForLater({ scheduledAt, delayMs = 0 }: NewEvent): boolean {
  return delayMs > 0 || (scheduledAt !== undefined && scheduledAt.getTime() > Date.now());
}

function assertWhen(scheduledAt: unknown, delayMs: unknown): void {
  if (scheduledAt !== undefined && delayMs !== undefined)
    throw invalid('scheduledAt and delayMs exclude each other: give one');
  if (scheduledAt !== undefined) assertMoment('scheduledAt', scheduledAt);
  if (
    delayMs !== undefined &&
    !(typeof delayMs === 'number' && delayMs >= 0 && delayMs <= 100 * 365 * 86_400_000)
  ) {
    throw invalid(`delayMs must be a number of milliseconds, 0 or more, got ${shown(delayMs)}`);
  }
}
