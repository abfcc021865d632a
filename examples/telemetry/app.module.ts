import { type DynamicModule, Module } from '@nestjs/common';
import { EventEmitterModule } from '@nestjs/event-emitter';
import { OutboxModule } from 'nestjs-outbox-relay';
import { AuditListener, NotificationListener } from './notification.listener.js';
import { QuotesService } from './quotes.service.js';

@Module({})
export class AppModule {
  static with(connectionString: string): DynamicModule {
    return {
      module: AppModule,
      imports: [
        EventEmitterModule.forRoot(),
        OutboxModule.forRoot({
          connectionString,
          migrate: true,
          // Nobody wants to watch a demo wait for two minutes.
          retry: { backoff: () => 300 },
        }),
      ],
      providers: [QuotesService, NotificationListener, AuditListener],
    };
  }
}
