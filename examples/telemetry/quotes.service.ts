import { Injectable } from '@nestjs/common';
import { OutboxService } from 'nestjs-outbox-relay';
import './quotes.events.js';

/** What an application's controllers call. It knows nothing of telemetry. */
@Injectable()
export class QuotesService {
  constructor(private readonly outbox: OutboxService) {}

  async create(quoteId: string): Promise<void> {
    await this.outbox.enqueue('quote.created', { quoteId });
  }

  async cancel(quoteId: string): Promise<void> {
    await this.outbox.enqueue('quote.cancelled', { quoteId });
  }
}
