import { Injectable } from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import { BootstrapPublisher, type Delivered } from 'nestjs-outbox-relay';
import './records.events.js';
import { SearchQueue } from './search-queue.js';

/** What the sentinel stands for: every record has a job in the queue. */
@Injectable()
export class SearchIndexListener {
  constructor(
    private readonly queue: SearchQueue,
    private readonly publisher: BootstrapPublisher,
  ) {}

  @OnEvent('record.bulk.upserted')
  async onRecords({ tenant, recordIds }: Delivered<'record.bulk.upserted'>): Promise<void> {
    await this.queue.addBulk(recordIds);
    // Slow, and not what the sentinel stands for: a topic of its own.
    this.publisher.publish('record.bulk.upserted.analytics', {
      tenant,
      records: recordIds.length,
    });
  }
}
