import { Injectable, Logger, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { createHash } from 'node:crypto';
import { PgBoss } from 'pg-boss';
import { Settings } from './settings.js';

const QUEUE = 'search-index';

/** The queue of the search index: pg-boss, in a database of its own. */
@Injectable()
export class SearchQueue implements OnModuleInit, OnApplicationShutdown {
  private readonly boss: PgBoss;

  constructor(settings: Settings) {
    this.boss = new PgBoss({ connectionString: settings.queueUrl, supervise: false });
    const logger = new Logger('SearchQueue');
    this.boss.on('error', (error) => logger.debug(error.message));
  }

  async onModuleInit(): Promise<void> {
    await this.boss.start();
    await this.boss.createQueue(QUEUE);
  }

  /** Adding a job twice is adding it once: its id is made of the record's. */
  async addBulk(recordIds: readonly string[]): Promise<void> {
    await this.boss.insert(
      QUEUE,
      recordIds.map((recordId) => ({ id: uuidOf(recordId), data: { recordId } })),
    );
  }

  async onApplicationShutdown(): Promise<void> {
    await this.boss.stop({ graceful: false, close: true });
  }
}

function uuidOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-5${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
