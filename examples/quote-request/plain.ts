/**
 * The same application without an outbox: it saves, then it emits. It works every time somebody
 * tries it out. The demo shows the time when it does not.
 */
import { Body, Controller, Injectable, Logger, Module, Post } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { EventEmitter2, EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import { AlimtalkClient } from './alimtalk.client.js';
import { Database } from './database.js';
import { InfrastructureModule } from './infrastructure.module.js';
import { newQuoteRequest } from './quote-requests.controller.js';
import type { NewQuoteRequest, QuoteRequest } from './quote-requests.service.js';
import { Settings } from './settings.js';

@Injectable()
class QuoteRequestRepository {
  constructor(private readonly database: Database) {}

  async save({ projectName, supplierPhone }: NewQuoteRequest): Promise<QuoteRequest> {
    const { rows } = await this.database.pool.query<{ id: string }>(
      'INSERT INTO quote_requests (project_name, supplier_phone) VALUES ($1, $2) RETURNING id',
      [projectName, supplierPhone],
    );
    return { id: String(rows[0]?.id), projectName, supplierPhone };
  }
}

@Controller('quote-requests')
class PlainQuoteRequestsController {
  constructor(
    private readonly repository: QuoteRequestRepository,
    private readonly eventEmitter: EventEmitter2,
  ) {}

  @Post()
  async create(@Body() body: unknown): Promise<QuoteRequest> {
    const saved = await this.repository.save(newQuoteRequest(body)); // committed
    // Whoever dies here takes the event along.
    this.eventEmitter.emit('quote_request.created', saved);
    return saved;
  }
}

@Injectable()
class PlainNotificationListener {
  constructor(private readonly alimtalk: AlimtalkClient) {}

  @OnEvent('quote_request.created')
  async notifySupplier({ id, projectName, supplierPhone }: QuoteRequest): Promise<void> {
    await this.alimtalk.send(
      {
        to: supplierPhone,
        templateCode: 'QUOTE_REQUEST_CREATED',
        variables: { quoteRequestId: id, projectName },
      },
      { idempotencyKey: id },
    );
  }
}

@Module({
  imports: [InfrastructureModule, EventEmitterModule.forRoot()],
  controllers: [PlainQuoteRequestsController],
  providers: [QuoteRequestRepository, PlainNotificationListener],
})
class PlainModule {}

const app = await NestFactory.create(PlainModule);
app.enableShutdownHooks();
await app.listen(app.get(Settings).port, '127.0.0.1');
new Logger('Main').log(`listening on ${await app.getUrl()}`);
