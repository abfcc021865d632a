import 'nestjs-outbox-relay';

declare module 'nestjs-outbox-relay' {
  interface OutboxEventMap {
    'record.bulk.upserted': { tenant: string; recordIds: string[] };
    'record.bulk.upserted.analytics': { tenant: string; records: number };
  }
}
