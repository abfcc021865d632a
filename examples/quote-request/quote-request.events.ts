/** Ties the event's name to its payload: enqueue and the listeners are checked against it. */
declare module 'nestjs-outbox-relay' {
  interface OutboxEventMap {
    'quote_request.created': {
      quoteRequestId: string;
      projectName: string;
      supplierPhone: string;
    };
  }
}

export const QUOTE_REQUEST_CREATED = 'quote_request.created';
