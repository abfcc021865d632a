import type { OutboxPayload } from '../event/payload.js';
import type { ClaimedEvent } from '../store/outbox-store.js';
import type { OutboxContext } from './outbox-context.js';

/** What becomes `_outbox`. A class for the sake of `signal`: an accessor of the prototype is not enumerable. */
export class DeliveryContext implements OutboxContext {
  readonly id: string;
  readonly eventType: string;
  readonly attempt: number;
  readonly retryCount: number;
  readonly scheduledAt: Date;
  readonly createdAt: Date;
  readonly metadata: OutboxPayload;
  readonly #signalled: { readonly signal: AbortSignal };

  /** @param signalled who says when the listener is to stop; asked only if the listener asks */
  constructor(
    event: Pick<
      ClaimedEvent,
      'id' | 'eventType' | 'retryCount' | 'scheduledAt' | 'createdAt' | 'metadata'
    >,
    signalled: { readonly signal: AbortSignal },
  ) {
    this.id = event.id;
    this.eventType = event.eventType;
    this.attempt = event.retryCount + 1;
    this.retryCount = event.retryCount;
    this.scheduledAt = event.scheduledAt;
    this.createdAt = event.createdAt;
    this.metadata = event.metadata;
    this.#signalled = signalled;
  }

  get signal(): AbortSignal {
    return this.#signalled.signal;
  }
}
