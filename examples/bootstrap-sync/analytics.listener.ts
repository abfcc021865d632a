import { Injectable } from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import type { Delivered } from 'nestjs-outbox-relay';
import { setTimeout as sleep } from 'node:timers/promises';
import './records.events.js';

/** A slow consumer, which nobody waits for. */
@Injectable()
export class AnalyticsListener {
  counted = 0;

  @OnEvent('record.bulk.upserted.analytics')
  async count({ records }: Delivered<'record.bulk.upserted.analytics'>): Promise<void> {
    await sleep(500);
    this.counted += records;
  }
}
