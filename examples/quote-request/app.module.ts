import { Module } from '@nestjs/common';
import { EventEmitterModule } from '@nestjs/event-emitter';
import { OutboxModule } from 'nestjs-outbox-relay';
import { OutboxDashboardModule } from 'nestjs-outbox-relay/dashboard';
import { AuditListener } from './audit.listener.js';
import { Database } from './database.js';
import { DeadLetterAlarmListener } from './dead-letter-alarm.listener.js';
import { InfrastructureModule } from './infrastructure.module.js';
import { NotificationListener } from './notification.listener.js';
import { OutboxController } from './outbox.controller.js';
import { QuoteRequestsController } from './quote-requests.controller.js';
import { QuoteRequestsService } from './quote-requests.service.js';
import { backoffMs, Settings } from './settings.js';

@Module({
  imports: [
    InfrastructureModule,
    EventEmitterModule.forRoot(),
    OutboxModule.forRootAsync({
      inject: [Database, Settings],
      useFactory: ({ pool }: Database, settings: Settings) => ({
        pool,
        migrate: true, // for the example; in production: npx nestjs-outbox-relay migrate
        retry: {
          maxRetries: settings.maxRetries,
          backoff: (retryCount) => backoffMs(retryCount, settings.backoffUnitMs),
        },
        relay: settings.relay && {
          leaseMs: settings.leaseMs,
          listenerTimeoutMs: settings.listenerTimeoutMs,
        },
      }),
    }),
    OutboxDashboardModule.forRootAsync({
      path: 'dashboard',
      inject: [Settings],
      useFactory: ({ dashboardPassword: password }: Settings) => ({
        title: 'Quote requests',
        credentials: [{ username: 'ops', password, rights: 'act' }],
        mask: ['supplierPhone'],
      }),
    }),
  ],
  controllers: [QuoteRequestsController, OutboxController],
  providers: [QuoteRequestsService, NotificationListener, AuditListener, DeadLetterAlarmListener],
})
export class AppModule {}
