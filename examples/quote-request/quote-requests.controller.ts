import { BadRequestException, Body, Controller, Post } from '@nestjs/common';
import {
  QuoteRequestsService,
  type NewQuoteRequest,
  type QuoteRequest,
} from './quote-requests.service.js';

@Controller('quote-requests')
export class QuoteRequestsController {
  constructor(private readonly quoteRequests: QuoteRequestsService) {}

  @Post()
  async create(@Body() body: unknown): Promise<QuoteRequest> {
    return this.quoteRequests.create(newQuoteRequest(body));
  }
}

export function newQuoteRequest(body: unknown): NewQuoteRequest {
  const { projectName, supplierPhone } = (body ?? {}) as Partial<Record<string, unknown>>;
  if (typeof projectName === 'string' && typeof supplierPhone === 'string')
    return { projectName, supplierPhone };
  throw new BadRequestException('the body must be {"projectName": "…", "supplierPhone": "…"}');
}
