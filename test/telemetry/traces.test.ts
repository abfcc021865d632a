import { describe, expect, it } from '@jest/globals';
import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';
import { OnEvent } from '@nestjs/event-emitter';
import {
  BootstrapPublisher,
  migrateOutbox,
  NonRetryableError,
  type Delivered,
  type OutboxModuleOptions,
} from '../../src/index.js';
import { InMemoryOutboxStore } from '../../src/testing.js';
import { createDatabase } from '../support/database.js';
import { startApp } from '../support/outbox-app.js';
import { startTelemetry } from '../support/telemetry.js';
import { until } from '../support/until.js';

// Asked for anew: each test registers an SDK of its own.
const tracer = () => trace.getTracer('the application');
const LISTENER = 'messaging.consumer.group.name';

class Supplier {
  @OnEvent('quote.created')
  notify(): void {
    tracer().startSpan('send alimtalk').end();
  }
}

class Admin {
  @OnEvent('quote.created')
  async notify(): Promise<void> {
    await Promise.resolve();
    tracer().startSpan('send mail').end();
  }
}

const memory = (): OutboxModuleOptions => ({ store: new InMemoryOutboxStore() });

/** Work within a request of its own, as an HTTP instrumentation makes it. */
async function request<T>(work: () => Promise<T>): Promise<T> {
  return tracer().startActiveSpan('POST /quotes', { kind: SpanKind.SERVER }, async (span) => {
    try {
      return await work();
    } finally {
      span.end();
    }
  });
}

const idOf = (span: ReadableSpan) => span.spanContext().spanId;
const traceOf = (span: ReadableSpan) => span.spanContext().traceId;
const parentOf = (span: ReadableSpan) => span.parentSpanContext?.spanId;

describe('an enqueue', () => {
  it('is a producer span below the request, by the names of the conventions', async () => {
    await using telemetry = startTelemetry();
    await using app = await startApp({ outbox: memory() });
    const { id } = await request(() => app.outbox.enqueue('quote.created', { quoteId: 'q-1' }));

    const span = telemetry.span('enqueue quote.created');
    expect(span.kind).toBe(SpanKind.PRODUCER);
    expect(parentOf(span)).toBe(idOf(telemetry.span('POST /quotes')));
    expect(span.attributes).toEqual({
      'messaging.system': 'nestjs-outbox-relay',
      'messaging.operation.name': 'enqueue',
      'messaging.operation.type': 'send',
      'messaging.destination.name': 'quote.created',
      'messaging.message.id': id,
    });
    expect(span.status.code).toBe(SpanStatusCode.UNSET);
  });

  it('stores its context in the metadata, beside what the caller has put there', async () => {
    await using telemetry = startTelemetry();
    await using app = await startApp({ outbox: memory() });
    const metadata = { requestedBy: 'kim', nested: { a: 1 } };
    const { id } = await app.outbox.enqueue('quote.created', {}, metadata);

    const span = telemetry.span('enqueue quote.created');
    expect((await app.event(id)).metadata).toEqual({
      ...metadata,
      traceparent: `00-${traceOf(span)}-${idOf(span)}-01`,
    });
    expect(metadata).toEqual({ requestedBy: 'kim', nested: { a: 1 } });
  });

  it('leaves alone what the caller has set, and adds no state of another trace to it', async () => {
    await using telemetry = startTelemetry({
      propagator: {
        inject: (_context, carrier, setter) => {
          for (const key of ['traceparent', 'tracestate', 'baggage'])
            setter.set(carrier, key, 'ours');
        },
        extract: (from) => from,
        fields: () => ['traceparent', 'tracestate', 'baggage'],
      },
    });
    await using app = await startApp({ outbox: memory() });
    const { id } = await app.outbox.enqueue('quote.created', {}, { traceparent: 'theirs' });
    expect((await app.event(id)).metadata).toEqual({ traceparent: 'theirs', baggage: 'ours' });
    expect(telemetry.spans()).toHaveLength(1);
  });

  it('of many is one span, with their number', async () => {
    await using telemetry = startTelemetry();
    await using app = await startApp({ outbox: memory() });
    const item = (eventType: string) => ({ eventType, payload: {} });
    const same = await app.outbox.enqueueMany([item('a'), item('a'), item('a')]);
    await app.outbox.enqueueMany([item('a'), item('b')]);
    await app.outbox.enqueueMany([]);

    const [first, second, ...others] = telemetry.spans();
    expect(others).toEqual([]);
    expect(first).toMatchObject({
      name: 'enqueue a',
      attributes: { 'messaging.batch.message_count': 3, 'messaging.destination.name': 'a' },
    });
    expect(second).toMatchObject({
      name: 'enqueue',
      attributes: { 'messaging.batch.message_count': 2 },
    });
    expect(second?.attributes).not.toHaveProperty('messaging.destination.name');
    for (const { id } of same)
      expect((await app.event(id)).metadata['traceparent']).toContain(idOf(first!));
  });

  it('that fails has failed in its span', async () => {
    await using telemetry = startTelemetry();
    const store = new InMemoryOutboxStore();
    store.enqueue = async () => {
      throw new RangeError('the disk is full');
    };
    await using app = await startApp({ outbox: { store, onStoreFailure: 'throw' } });
    await expect(app.outbox.enqueue('quote.created', {})).rejects.toThrow('the disk is full');
    const span = telemetry.span('enqueue quote.created');
    expect(span.status).toEqual({
      code: SpanStatusCode.ERROR,
      message: 'RangeError: the disk is full',
    });
    expect(span.attributes['error.type']).toBe('RangeError');
    expect(span.events.map(({ name }) => name)).toEqual(['exception']);
  });

  it('carries baggage along, but nothing that PostgreSQL could not hold', async () => {
    await using telemetry = startTelemetry({
      propagator: {
        inject: (_context, carrier, setter) => {
          setter.set(carrier, 'baggage', 'tenant=seoul');
          setter.set(carrier, 'x-odd', 'a\0b');
          setter.set(carrier, 'x-half', '\ud83d');
        },
        extract: (from) => from,
        fields: () => [],
      },
    });
    await using app = await startApp({ outbox: memory() });
    const { id } = await app.outbox.enqueue('quote.created', {});
    expect((await app.event(id)).metadata).toEqual({ baggage: 'tenant=seoul' });
    expect(telemetry.spans()).toHaveLength(1);
  });

  it('in a transaction is traced alike, and what rolls back leaves a span and no event', async () => {
    await using telemetry = startTelemetry();
    await using database = await createDatabase();
    await migrateOutbox({ database: database.pool });
    await using app = await startApp({ outbox: { pool: database.pool }, providers: [Supplier] });
    const client = await database.pool.connect();
    try {
      await client.query('BEGIN');
      await request(() => app.outbox.enqueue('quote.created', {}, { by: 'kim' }, { tx: client }));
      await client.query('COMMIT');
      await client.query('BEGIN');
      await app.outbox.enqueue('quote.undone', {}, {}, { tx: client });
      await client.query('ROLLBACK');
    } finally {
      client.release();
    }
    expect(await app.outbox.processPending()).toBe(1);
    const sent = telemetry.span('enqueue quote.created');
    const stored = await database.query('SELECT metadata FROM outbox_events');
    expect(stored).toEqual([
      { metadata: { by: 'kim', traceparent: `00-${traceOf(sent)}-${idOf(sent)}-01` } },
    ]);
    expect(parentOf(telemetry.span('deliver quote.created'))).toBe(idOf(sent));
    telemetry.span('enqueue quote.undone');
  });
});

describe('a delivery', () => {
  it('is a consumer span for each listener, in the trace of the request and linked to the enqueue', async () => {
    await using telemetry = startTelemetry();
    await using app = await startApp({ outbox: memory(), providers: [Supplier, Admin] });
    const { id } = await request(() => app.outbox.enqueue('quote.created', {}));
    await app.outbox.processPending();

    const sent = telemetry.span('enqueue quote.created');
    const spans = telemetry.spans().filter(({ name }) => name === 'deliver quote.created');
    expect(spans.map(({ attributes }) => String(attributes[LISTENER])).toSorted()).toEqual([
      'Admin.notify',
      'Supplier.notify',
    ]);
    for (const span of spans) {
      expect(span.kind).toBe(SpanKind.CONSUMER);
      expect(traceOf(span)).toBe(traceOf(telemetry.span('POST /quotes')));
      expect(parentOf(span)).toBe(idOf(sent));
      expect(span.links.map((link) => link.context.spanId)).toEqual([idOf(sent)]);
      expect(span.attributes).toMatchObject({
        'messaging.system': 'nestjs-outbox-relay',
        'messaging.operation.name': 'deliver',
        'messaging.operation.type': 'process',
        'messaging.destination.name': 'quote.created',
        'messaging.message.id': id,
        'outbox.attempt': 1,
      });
    }
  });

  it('has below it what its listener calls, also after an await', async () => {
    await using telemetry = startTelemetry();
    await using app = await startApp({ outbox: memory(), providers: [Supplier, Admin] });
    await app.outbox.enqueue('quote.created', {});
    await app.outbox.processPending();
    const spanOf = (listener: string) =>
      telemetry.spans().find(({ attributes }) => attributes[LISTENER] === listener)!;
    expect(parentOf(telemetry.span('send alimtalk'))).toBe(idOf(spanOf('Supplier.notify')));
    expect(parentOf(telemetry.span('send mail'))).toBe(idOf(spanOf('Admin.notify')));
  });

  it('continues the trace in what a listener enqueues', async () => {
    await using telemetry = startTelemetry();
    class Chain {
      @OnEvent('first')
      async first(): Promise<void> {
        await app.outbox.enqueue('second', {});
      }

      @OnEvent('second')
      second(): void {}
    }
    await using app = await startApp({ outbox: memory(), providers: [Chain] });
    await request(() => app.outbox.enqueue('first', {}));
    await app.outbox.processPending();
    await app.outbox.processPending();
    expect(parentOf(telemetry.span('enqueue second'))).toBe(idOf(telemetry.span('deliver first')));
    expect(parentOf(telemetry.span('deliver second'))).toBe(idOf(telemetry.span('enqueue second')));
    expect(new Set(telemetry.spans().map(traceOf)).size).toBe(1);
  });

  it('that is repeated is another span in the same trace, with the number of its attempt', async () => {
    await using telemetry = startTelemetry();
    class Moody {
      @OnEvent('quote.created')
      notify({ _outbox }: Delivered): void {
        if (_outbox.attempt === 1) throw new TypeError('not today');
      }
    }
    const store = new InMemoryOutboxStore();
    await using app = await startApp({ outbox: { store }, providers: [Moody, Supplier] });
    await app.outbox.enqueue('quote.created', {});
    await app.outbox.processPending();
    store.advance(120_000);
    await app.outbox.processPending();

    const spans = telemetry
      .spans()
      .filter(({ attributes }) => attributes[LISTENER] === 'Moody.notify');
    expect(spans.map(({ attributes }) => attributes['outbox.attempt'])).toEqual([1, 2]);
    expect(spans.map(({ status }) => status.code)).toEqual([
      SpanStatusCode.ERROR,
      SpanStatusCode.UNSET,
    ]);
    expect(spans[0]?.status.message).toBe('TypeError: not today');
    expect(spans[0]?.attributes['error.type']).toBe('TypeError');
    expect(spans[0]?.events[0]?.attributes).toMatchObject({ 'exception.message': 'not today' });
    expect(new Set(spans.map(parentOf))).toEqual(
      new Set([idOf(telemetry.span('enqueue quote.created'))]),
    );
    // The other one had succeeded.
    expect(
      telemetry.spans().filter((span) => span.attributes[LISTENER] === 'Supplier.notify'),
    ).toHaveLength(1);
  });

  it('ends its span when the listener has run out of time, and only once', async () => {
    await using telemetry = startTelemetry();
    let answer = (): void => {};
    class Slow {
      @OnEvent('quote.created')
      async notify(): Promise<void> {
        await new Promise<void>((resolve) => (answer = resolve));
      }
    }
    await using app = await startApp({
      outbox: { ...memory(), relay: { listenerTimeoutMs: 20 } },
      providers: [Slow],
    });
    const { id } = await app.outbox.enqueue('quote.created', {});
    await until(async () => (await app.event(id)).retryCount === 1, { what: 'it has failed' });
    answer();
    await new Promise(setImmediate);
    const span = telemetry.span('deliver quote.created');
    expect(span.status.message).toMatch(/timed out after 20 ms/);
    expect(await telemetry.measured('outbox.delivery.duration')).toMatchObject([
      { value: 1, attributes: { 'outbox.outcome': 'failed' } },
    ]);
  });

  it('ends its span when the process stops', async () => {
    await using telemetry = startTelemetry();
    let started = false;
    class Hanging {
      @OnEvent('quote.created')
      async notify(): Promise<void> {
        started = true;
        await new Promise(() => {});
      }
    }
    const app = await startApp({
      outbox: { ...memory(), relay: { shutdownTimeoutMs: 20 } },
      providers: [Hanging],
    });
    await app.outbox.enqueue('quote.created', {});
    await until(() => started, { what: 'the listener is called' });
    await app.close();
    expect(telemetry.span('deliver quote.created').status).toEqual({
      code: SpanStatusCode.ERROR,
      message: 'the process is shutting down',
    });
    expect(await telemetry.measured('outbox.events.settled')).toMatchObject([
      { value: 1, attributes: { 'outbox.outcome': 'released' } },
    ]);
  });

  it('takes the context of whoever stored the event, and of nobody if there is none', async () => {
    await using telemetry = startTelemetry();
    const store = new InMemoryOutboxStore();
    await using app = await startApp({ outbox: { store }, providers: [Supplier] });
    const event = { eventType: 'quote.created', payload: {} };
    const traceId = '0af7651916cd43dd8448eb211c80319c';
    await store.enqueue([
      {
        ...event,
        id: '00000000-0000-4000-8000-000000000001',
        metadata: { traceparent: `00-${traceId}-b7ad6b7169203331-01`, tracestate: 'vendor=1' },
      },
      { ...event, id: '00000000-0000-4000-8000-000000000002', metadata: { traceparent: 7 } },
      { ...event, id: '00000000-0000-4000-8000-000000000003', metadata: { traceparent: 'xx' } },
    ]);
    await app.outbox.processPending();
    const spans = telemetry.spans().filter(({ name }) => name === 'deliver quote.created');
    const byEnd = (digit: string) =>
      spans.find(({ attributes }) => String(attributes['messaging.message.id']).endsWith(digit))!;
    expect(traceOf(byEnd('1'))).toBe(traceId);
    expect(parentOf(byEnd('1'))).toBe('b7ad6b7169203331');
    expect(byEnd('1').spanContext().traceState?.get('vendor')).toBe('1');
    for (const digit of ['2', '3']) {
      expect(parentOf(byEnd(digit))).toBeUndefined();
      expect(byEnd(digit).links).toEqual([]);
    }
  });

  it('hands the baggage of the request to its listeners', async () => {
    await using telemetry = startTelemetry();
    const seen: (string | undefined)[] = [];
    class Tenant {
      @OnEvent('quote.created')
      notify(): void {
        seen.push(propagation.getActiveBaggage()?.getEntry('tenant')?.value);
      }
    }
    await using app = await startApp({ outbox: memory(), providers: [Tenant] });
    const baggage = propagation.createBaggage({ tenant: { value: 'seoul' } });
    await context.with(propagation.setBaggage(context.active(), baggage), () =>
      app.outbox.enqueue('quote.created', {}),
    );
    await app.outbox.processPending();
    expect(seen).toEqual(['seoul']);
    expect(telemetry.spans()).toHaveLength(2);
  });

  it('by the relay does not run in the request whose enqueue woke it, only below its span', async () => {
    await using telemetry = startTelemetry();
    await using app = await startApp({ outbox: { ...memory(), relay: {} }, providers: [Supplier] });
    const other = await request(() => app.outbox.enqueue('quote.created', {}));
    await app.eventIn('COMPLETED', other.id);
    const sent = telemetry.span('enqueue quote.created');
    expect(parentOf(telemetry.span('deliver quote.created'))).toBe(idOf(sent));
  });

  it('to a raw listener runs in the context that was stored with the event', async () => {
    await using telemetry = startTelemetry();
    await using app = await startApp({ outbox: memory() });
    app.emitter.on('quote.created', () => tracer().startSpan('raw work').end());
    await app.outbox.enqueue('quote.created', {});
    await app.outbox.processPending();
    expect(parentOf(telemetry.span('raw work'))).toBe(
      idOf(telemetry.span('enqueue quote.created')),
    );
  });
});

describe('the last resort in memory', () => {
  it('is an enqueue that failed, and a delivery below it', async () => {
    await using telemetry = startTelemetry();
    const store = new InMemoryOutboxStore();
    store.enqueue = async () => {
      throw new Error('no database');
    };
    const seen: unknown[] = [];
    class Listener {
      @OnEvent('quote.created')
      notify({ _outbox }: Delivered): void {
        seen.push(_outbox.metadata);
        tracer().startSpan('send alimtalk').end();
      }
    }
    await using app = await startApp({ outbox: { store }, providers: [Listener] });
    expect(await app.outbox.enqueue('quote.created', {}, { by: 'kim' })).toMatchObject({
      stored: false,
    });
    await until(() => telemetry.spans().length === 3, { what: 'all spans have ended' });
    const sent = telemetry.span('enqueue quote.created');
    const delivered = telemetry.span('deliver quote.created');
    expect(sent.status).toEqual({ code: SpanStatusCode.ERROR, message: 'no database' });
    expect(seen).toEqual([{ by: 'kim', traceparent: `00-${traceOf(sent)}-${idOf(sent)}-01` }]);
    expect(parentOf(delivered)).toBe(idOf(sent));
    expect(parentOf(telemetry.span('send alimtalk'))).toBe(idOf(delivered));
  });
});

describe('what is published without being stored', () => {
  it('is delivered in the trace of whoever published it', async () => {
    await using telemetry = startTelemetry();
    class Refusing {
      @OnEvent('quote.created')
      notify(): void {
        throw new NonRetryableError('no phone number');
      }
    }
    await using app = await startApp({ outbox: memory(), providers: [Supplier, Refusing] });
    const publisher = app.module.get(BootstrapPublisher);
    await expect(request(() => publisher.publishAsync('quote.created', {}))).rejects.toThrow();
    const spans = telemetry.spans().filter(({ name }) => name === 'deliver quote.created');
    expect(spans).toHaveLength(2);
    for (const span of spans) {
      expect(parentOf(span)).toBe(idOf(telemetry.span('POST /quotes')));
      expect(span.links).toEqual([]);
    }
  });
});

describe('names of spans', () => {
  it('are of 200 event types and no more: the others have their type in an attribute alone', async () => {
    await using telemetry = startTelemetry();
    await using app = await startApp({ outbox: memory() });
    for (let type = 1; type <= 201; type++) await app.outbox.enqueue(`type.${type}`, {});
    expect(telemetry.span('enqueue type.200').attributes['messaging.destination.name']).toBe(
      'type.200',
    );
    expect(telemetry.span('enqueue _OTHER').attributes['messaging.destination.name']).toBe(
      'type.201',
    );
    const counts = await telemetry.measured('messaging.client.sent.messages');
    expect(counts).toHaveLength(201);
  });
});
