import { randomUUID } from 'node:crypto';
import type { Delivery } from '../delivery/delivery.js';
import { assertEventType } from '../event/event-type.js';
import { OutboxError } from '../event/outbox-error.js';
import { assertNoReservedKeys, toStorable } from '../event/payload.js';
import type { Log } from '../relay/log.js';
import type { ClaimedEvent } from '../store/outbox-store.js';
import { bounded } from './bounded.js';
import { PublishFailedError } from './gate-errors.js';

/** An event that is delivered now, in this process, without being stored. */
export type Publication = Pick<ClaimedEvent, 'id' | 'eventType' | 'payload'>;

const NEVER = new AbortController().signal;

/** Delivers events that rest nowhere, once, and knows what became of them. */
export class Publications {
  private attached = false;

  constructor(
    private readonly delivery: Delivery,
    /** Resolves when events can reach the listeners. */
    private readonly listenersAttached: () => Promise<void>,
    private readonly attachWithinMs: number,
    private readonly log: Log,
  ) {}

  /** @throws OutboxError `INVALID_ARGUMENT` */
  prepare(eventType: unknown, payload: unknown): Publication {
    assertEventType(eventType);
    // As it would arrive from the relay: a copy, dates as text, and nothing that could not be stored.
    const storable = toStorable('payload', payload);
    assertNoReservedKeys(storable);
    return { id: randomUUID(), eventType, payload: storable };
  }

  /**
   * Resolves if somebody in this process listens.
   * @throws OutboxError `UNHEARD`, or the reason of `signal`
   */
  async assertHeard(eventType: string, signal: AbortSignal): Promise<void> {
    if (!this.attached) await this.waitForListeners(signal);
    if (!this.delivery.hears(eventType)) throw unheard(eventType);
  }

  /**
   * Resolves when every listener has succeeded.
   * @throws PublishFailedError, OutboxError `UNHEARD`, or the reason of `signal`
   */
  async deliver(publication: Publication, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (!this.attached) await this.waitForListeners(signal);
    const now = new Date();
    const running = this.delivery.start({
      ...publication,
      leaseToken: '',
      metadata: {},
      retryCount: 0,
      acknowledgedBy: [],
      scheduledAt: now,
      createdAt: now,
      unheardSince: null,
      claimedAt: now,
    });
    const cancel = (): void => running.cancel(signal.reason as Error);
    signal.addEventListener('abort', cancel, { once: true });
    const outcome = await running.outcome;
    signal.removeEventListener('abort', cancel);

    const { eventType, id } = publication;
    if (outcome.kind === 'unheard') throw unheard(eventType);
    if (outcome.kind === 'cancelled') throw signal.reason;
    if (outcome.failures.length === 0) return;
    for (const { listener, error } of outcome.failures) {
      // Nest would have logged where it came from, had the delivery not taken it over.
      const stack = typeof error === 'object' && error !== null && 'stack' in error && error.stack;
      if (typeof stack === 'string') this.log.debug(`${eventType} ${id} ${listener}: ${stack}`);
    }
    throw new PublishFailedError(eventType, outcome.failures);
  }

  private async waitForListeners(signal: AbortSignal = NEVER): Promise<void> {
    try {
      await bounded('attaching', this.attachWithinMs, signal, this.listenersAttached);
    } catch (error) {
      signal.throwIfAborted();
      throw new OutboxError(
        'SETUP',
        `the listeners were not attached within ${this.attachWithinMs} ms: has the application been initialised ` +
          '(app.init, app.listen)? Awaited in onModuleInit it waits for itself: move it to onApplicationBootstrap, ' +
          'or do not await it there',
        { cause: error },
      );
    }
    this.attached = true;
  }
}

function unheard(eventType: string): OutboxError {
  return new OutboxError(
    'UNHEARD',
    `nobody in this process listens to ${eventType}: is an @OnEvent method missing or renamed?`,
  );
}
