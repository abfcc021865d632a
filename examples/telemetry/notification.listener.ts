import { Injectable } from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import { trace } from '@opentelemetry/api';
import { NonRetryableError, OutboxService, type Delivered } from 'nestjs-outbox-relay';
import './quotes.events.js';

@Injectable()
export class NotificationListener {
  constructor(private readonly outbox: OutboxService) {}

  /** Its gateway is down at the first attempt. */
  @OnEvent('quote.created')
  async notifySupplier({ quoteId, _outbox }: Delivered<'quote.created'>): Promise<void> {
    // A span of the application's own; one of an HTTP client's instrumentation would be in the same place.
    await trace.getTracer('gateway').startActiveSpan('send alimtalk', async (span) => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      span.end();
    });
    if (_outbox.attempt === 1) throw new Error('the gateway answers 503');
    await this.outbox.enqueue('quote.notified', { quoteId });
  }

  @OnEvent('quote.notified')
  async count(): Promise<void> {}

  @OnEvent('quote.cancelled')
  async refuse(): Promise<void> {
    throw new NonRetryableError('the supplier has no phone number');
  }
}

@Injectable()
export class AuditListener {
  @OnEvent('quote.created')
  async note(): Promise<void> {}
}
