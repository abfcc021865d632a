import { Injectable } from '@nestjs/common';
import { OutboxService } from 'nestjs-outbox-relay';
import { Database } from './database.js';
import { QUOTE_REQUEST_CREATED } from './quote-request.events.js';

export interface NewQuoteRequest {
  projectName: string;
  supplierPhone: string;
}

export interface QuoteRequest extends NewQuoteRequest {
  id: string;
}

@Injectable()
export class QuoteRequestsService {
  constructor(
    private readonly database: Database,
    private readonly outbox: OutboxService,
  ) {}

  /** The quote request and its event commit together or not at all. */
  async create({ projectName, supplierPhone }: NewQuoteRequest): Promise<QuoteRequest> {
    return this.database.transaction(async (tx) => {
      const { rows } = await tx.query<{ id: string }>(
        'INSERT INTO quote_requests (project_name, supplier_phone) VALUES ($1, $2) RETURNING id',
        [projectName, supplierPhone],
      );
      const saved = { id: String(rows[0]?.id), projectName, supplierPhone };

      await this.outbox.enqueue(
        QUOTE_REQUEST_CREATED,
        { quoteRequestId: saved.id, projectName, supplierPhone },
        {},
        { tx },
      );
      return saved;
    });
  }
}
