import { Injectable } from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import type { Delivered } from 'nestjs-outbox-relay';
import { AlimtalkClient } from './alimtalk.client.js';
import { QUOTE_REQUEST_CREATED } from './quote-request.events.js';

/** Tells the supplier about the quote request. */
@Injectable()
export class NotificationListener {
  constructor(private readonly alimtalk: AlimtalkClient) {}

  /** Throwing is how it fails: the outbox calls it again later. */
  @OnEvent(QUOTE_REQUEST_CREATED)
  async notifySupplier(event: Delivered<typeof QUOTE_REQUEST_CREATED>): Promise<void> {
    const { quoteRequestId, projectName, supplierPhone, _outbox } = event;
    await this.alimtalk.send(
      {
        to: supplierPhone,
        templateCode: 'QUOTE_REQUEST_CREATED',
        variables: { quoteRequestId, projectName },
      },
      { idempotencyKey: _outbox.id, signal: _outbox.signal },
    );
  }
}
