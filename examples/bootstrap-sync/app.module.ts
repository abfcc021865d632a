import { type DynamicModule, Module } from '@nestjs/common';
import { EventEmitterModule } from '@nestjs/event-emitter';
import { OutboxModule } from 'nestjs-outbox-relay';
import { AnalyticsListener } from './analytics.listener.js';
import { RecordsRepository } from './records.repository.js';
import { RecordsSync } from './records.sync.js';
import { SearchIndexListener } from './search-index.listener.js';
import { SearchQueue } from './search-queue.js';
import { Settings } from './settings.js';

@Module({})
export class AppModule {
  static with(settings: Settings): DynamicModule {
    return {
      module: AppModule,
      imports: [
        EventEmitterModule.forRoot(),
        // This application only publishes; one that enqueues as well leaves `relay` out.
        OutboxModule.forRoot({
          connectionString: settings.databaseUrl,
          migrate: true,
          relay: false,
        }),
      ],
      providers: [
        { provide: Settings, useValue: settings },
        RecordsRepository,
        SearchQueue,
        RecordsSync,
        SearchIndexListener,
        AnalyticsListener,
      ],
    };
  }
}
