import 'nestjs-outbox-relay';

declare module 'nestjs-outbox-relay' {
  interface OutboxEventMap {
    'quote.created': { quoteId: string };
    'quote.notified': { quoteId: string };
    'quote.cancelled': { quoteId: string };
  }
}
