import { OnEvent } from '@nestjs/event-emitter';
import type { Delivered, OutboxPayload, OutboxService, PayloadOf } from 'nestjs-outbox-relay';

// Not run but compiled, by `npm run types`: each line marked @ts-expect-error must be refused by the compiler, and
// all the others must not. The names are this file's own, for a declaration is seen by the whole program.

declare module 'nestjs-outbox-relay' {
  interface OutboxEventMap {
    'types_test.quote_created': { quoteRequestId: string; amount?: number };
    'types_test.ping': Record<string, never>;
  }
}

export async function enqueueIsTyped(outbox: OutboxService): Promise<void> {
  await outbox.enqueue('types_test.quote_created', { quoteRequestId: 'q-1' });
  await outbox.enqueue(
    'types_test.quote_created',
    { quoteRequestId: 'q-1', amount: 5 },
    { any: 1 },
  );
  await outbox.enqueue('types_test.ping', {});

  // @ts-expect-error -- quoteRequestId is missing
  await outbox.enqueue('types_test.quote_created', {});
  // @ts-expect-error -- a number is no string
  await outbox.enqueue('types_test.quote_created', { quoteRequestId: 1 });
  // @ts-expect-error -- there is no such property
  await outbox.enqueue('types_test.quote_created', { quoteRequestId: 'q-1', quoteId: 'x' });
  // @ts-expect-error -- a payload is an object
  await outbox.enqueue('types_test.quote_created', ['q-1']);

  // What is not declared takes any object…
  await outbox.enqueue('types_test.undeclared', { whatever: [1, { deep: true }] });
  // @ts-expect-error -- …and an object it must be
  await outbox.enqueue('types_test.undeclared', 'text');
  // An interface is an object too, though it has no index signature.
  interface Order {
    readonly id: string;
  }
  const order: Order = { id: 'o-1' };
  await outbox.enqueue('types_test.undeclared', { ...order });

  // @ts-expect-error -- misspelled
  await outbox.enqueue('types_test.ping', {}, {}, { delay: 5 });
  // @ts-expect-error -- a time is a Date
  await outbox.enqueue('types_test.ping', {}, {}, { scheduledAt: '2031-01-01' });
  // @ts-expect-error -- a transaction has a query method
  await outbox.enqueue('types_test.ping', {}, {}, { tx: {} });
}

export async function enqueueManyIsTyped(outbox: OutboxService): Promise<void> {
  await outbox.enqueueMany([
    { eventType: 'types_test.quote_created', payload: { quoteRequestId: 'q-1' } },
    { eventType: 'types_test.ping', payload: {}, delayMs: 5 },
    { eventType: 'types_test.undeclared', payload: { whatever: 1 } },
  ]);
  await outbox.enqueueMany([
    // @ts-expect-error -- quoteRequestId is missing
    { eventType: 'types_test.quote_created', payload: {} },
  ]);
  await outbox.enqueueMany([
    // @ts-expect-error -- tx belongs to all of them: the second argument
    { eventType: 'types_test.ping', payload: {}, tx: { query: async () => ({ rows: [] }) } },
  ]);
  // A list made elsewhere.
  const events = ['a', 'b'].map((id) => ({
    eventType: 'types_test.quote_created' as const,
    payload: { quoteRequestId: id },
  }));
  await outbox.enqueueMany(events);
}

export class Listeners {
  @OnEvent('types_test.quote_created')
  typed(event: Delivered<'types_test.quote_created'>): string {
    const amount: number | undefined = event.amount;
    const failed: true | undefined = event._outboxFailed;
    const signal: AbortSignal = event._outbox.signal;
    // @ts-expect-error -- there is no such property
    void event.quoteId;
    // @ts-expect-error -- what the outbox says is not to be changed
    event._outbox.attempt = 2;
    return `${event.quoteRequestId} ${event._outbox.id} ${amount} ${failed} ${signal.aborted}`;
  }

  @OnEvent('types_test.undeclared')
  untyped(event: Delivered): unknown {
    return event['whatever'];
  }
}

export const declared: PayloadOf<'types_test.ping'> = {};
export const undeclared: PayloadOf<'types_test.undeclared'> = {
  anything: 1,
} satisfies OutboxPayload;
