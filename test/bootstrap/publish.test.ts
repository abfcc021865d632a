import { describe, expect, it } from '@jest/globals';
import { Injectable, Scope, type OnApplicationBootstrap, type OnModuleInit } from '@nestjs/common';
import { EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import { Test } from '@nestjs/testing';
import {
  BootstrapPublisher,
  NonRetryableError,
  OutboxModule,
  PublishFailedError,
  type Delivered,
} from '../../src/index.js';
import { InMemoryOutboxStore } from '../../src/testing.js';
import { RecordingLogger } from '../support/logger.js';
import { startApp, type OutboxApp } from '../support/outbox-app.js';
import { deferred, until, untilPasses } from '../support/until.js';

const store = (): { store: InMemoryOutboxStore } => ({ store: new InMemoryOutboxStore() });
const publisherOf = (app: OutboxApp): BootstrapPublisher => app.module.get(BootstrapPublisher);

describe('publishAsync', () => {
  it('resolves only when every listener has succeeded', async () => {
    const go = deferred();
    const done: string[] = [];
    class Quick {
      @OnEvent('record.upserted')
      on(): void {
        done.push('quick');
      }
    }
    class Slow {
      @OnEvent('record.upserted')
      async on(): Promise<void> {
        await go.promise;
        done.push('slow');
      }
    }
    await using app = await startApp({ outbox: store(), providers: [Quick, Slow] });
    const publishing = publisherOf(app).publishAsync('record.upserted', { id: 1 });
    let resolved = false;
    void publishing.then(() => (resolved = true));
    await until(() => done.length === 1, { what: 'the quick one is done' });
    await new Promise((resolve) => setImmediate(resolve));
    expect(resolved).toBe(false);
    go.resolve();
    await publishing;
    expect(done).toEqual(['quick', 'slow']);
  });

  it('rejects for a plain @OnEvent method whose errors the decorator swallows', async () => {
    class Index {
      @OnEvent('record.upserted')
      async on(): Promise<void> {
        throw new Error('the queue is down');
      }
    }
    await using app = await startApp({ outbox: store(), providers: [Index] });
    expect(await app.emitter.emitAsync('record.upserted', {})).toEqual([undefined]);
    await expect(publisherOf(app).publishAsync('record.upserted', {})).rejects.toThrow(
      'record.upserted failed: Index.on: the queue is down',
    );
  });

  it('rejects with all failures, each with its listener’s name, after the others have finished', async () => {
    const go = deferred();
    let finished = false;
    const notAnError: unknown = { status: 503 };
    class A {
      @OnEvent('record.upserted', { suppressErrors: false })
      fails(): void {
        throw new Error('at once');
      }
    }
    class B {
      @OnEvent('record.*')
      async fails(): Promise<void> {
        await go.promise;
        throw notAnError;
      }
    }
    @Injectable({ scope: Scope.REQUEST })
    class C {
      @OnEvent('record.upserted')
      async fails(): Promise<void> {
        throw new NonRetryableError('never');
      }
    }
    class D {
      @OnEvent('record.upserted')
      async succeeds(): Promise<void> {
        await go.promise;
        finished = true;
      }
    }
    await using app = await startApp({
      outbox: store(),
      providers: [A, B, C, D],
      emitter: { wildcard: true },
    });
    const raw = (): unknown => Promise.reject(new Error('raw'));
    app.emitter.on('record.upserted', raw);
    const publishing = publisherOf(app).publishAsync('record.upserted', {});
    setImmediate(() => go.resolve());
    const error = await publishing.catch((caught: unknown) => caught as PublishFailedError);
    expect(error).toBeInstanceOf(PublishFailedError);
    const { failures, code } = error as PublishFailedError;
    expect(code).toBe('PUBLISH_FAILED');
    expect(failures.map(({ listener }) => listener).toSorted()).toEqual([
      'A.fails',
      'B.fails',
      'C.fails',
      'a listener added with emitter.on()',
    ]);
    expect(failures.find(({ listener }) => listener === 'B.fails')?.error).toBe(notAnError);
    expect(finished).toBe(true);
  });

  it('gives the listener what the relay would', async () => {
    let seen: Delivered | undefined;
    class Index {
      @OnEvent('record.upserted')
      on(event: Delivered): void {
        seen = event;
      }
    }
    await using app = await startApp({ outbox: store(), providers: [Index] });
    await publisherOf(app).publishAsync('record.upserted', { ids: ['a'] });
    expect(seen).toMatchObject({
      ids: ['a'],
      _outbox: { eventType: 'record.upserted', attempt: 1, metadata: {} },
    });
    expect(seen?._outbox.id).toMatch(/^[0-9a-f-]{36}$/);
    expect(seen?._outbox.signal.aborted).toBe(false);
  });

  it('rejects when nobody listens', async () => {
    await using app = await startApp({ outbox: store() });
    await expect(publisherOf(app).publishAsync('record.upserted', {})).rejects.toMatchObject({
      code: 'UNHEARD',
      message: expect.stringContaining('nobody in this process listens to record.upserted'),
    });
  });

  it('is bounded by a timeout, and tells a listener that hangs', async () => {
    let signal: AbortSignal | undefined;
    class Hung {
      @OnEvent('record.upserted')
      async on(event: Delivered): Promise<void> {
        signal = event._outbox.signal;
        await new Promise(() => {});
      }
    }
    await using app = await startApp({
      outbox: { ...store(), relay: { listenerTimeoutMs: 50 } },
      providers: [Hung],
    });
    await expect(publisherOf(app).publishAsync('record.upserted', {})).rejects.toThrow(
      'Hung.on: timed out after 50 ms',
    );
    expect(signal?.aborted).toBe(true);
  });

  it('waits for listeners that are not attached yet', async () => {
    const heard: unknown[] = [];
    class Listener {
      @OnEvent('record.upserted')
      on({ n }: { n: number }): void {
        heard.push(n);
      }
    }
    @Injectable()
    class Early implements OnModuleInit, OnApplicationBootstrap {
      inInit: Promise<void> | undefined;
      constructor(private readonly publisher: BootstrapPublisher) {}
      onModuleInit(): void {
        this.inInit = this.publisher.publishAsync('record.upserted', { n: 1 });
        this.publisher.publish('record.upserted', { n: 2 });
      }
      async onApplicationBootstrap(): Promise<void> {
        await this.publisher.publishAsync('record.upserted', { n: 3 });
        expect(heard).toContain(3);
      }
    }
    await using app = await startApp({ outbox: store(), providers: [Listener, Early] });
    await app.module.get(Early).inInit;
    await until(() => heard.length === 3, { what: 'all are heard' });
  });

  it('awaited in onModuleInit, where it waits for itself, it ends and says so', async () => {
    @Injectable()
    class Early implements OnModuleInit {
      failure: unknown;
      constructor(private readonly publisher: BootstrapPublisher) {}
      async onModuleInit(): Promise<void> {
        await this.publisher
          .publishAsync('a', {})
          .catch((error: unknown) => (this.failure = error));
      }
    }
    await using app = await startApp({
      outbox: { ...store(), relay: { listenerTimeoutMs: 50 } },
      providers: [Early],
    });
    expect(app.module.get(Early).failure).toMatchObject({
      code: 'SETUP',
      message: expect.stringContaining('Awaited in onModuleInit it waits for itself'),
    });
  });

  it('refuses after shutdown began, and a shutdown waits for what is under way', async () => {
    const go = deferred();
    const order: string[] = [];
    class Slow {
      @OnEvent('record.upserted')
      async on(): Promise<void> {
        order.push('called');
        await go.promise;
        order.push('done');
      }
    }
    const app = await startApp({ outbox: store(), providers: [Slow] });
    const publisher = publisherOf(app);
    const publishing = publisher.publishAsync('record.upserted', {});
    await until(() => order.length === 1, { what: 'it is under way' });
    const closing = app.close().then(() => order.push('closed'));
    // The shutdown begins with it, before anything is waited for.
    await new Promise((resolve) => setImmediate(resolve));
    await expect(publisher.publishAsync('record.upserted', {})).rejects.toMatchObject({
      code: 'SHUTTING_DOWN',
    });
    publisher.publish('record.upserted', {});
    go.resolve();
    await publishing;
    await closing;
    expect(order).toEqual(['called', 'done', 'closed']);
    expect(app.log.messages('error')).toEqual([
      expect.stringContaining('the application is shutting down'),
    ]);
  });

  it('is broken off when a shutdown has waited long enough', async () => {
    class Hung {
      @OnEvent('record.upserted')
      async on(): Promise<void> {
        await new Promise(() => {});
      }
    }
    const app = await startApp({
      outbox: { ...store(), relay: { shutdownTimeoutMs: 10 } },
      providers: [Hung],
    });
    const publishing = publisherOf(app).publishAsync('record.upserted', {});
    const failing = expect(publishing).rejects.toMatchObject({ code: 'SHUTTING_DOWN' });
    await app.close();
    await failing;
  });

  it('hands over what would arrive from the relay: a copy, its dates as text', async () => {
    const heard: unknown[] = [];
    class Index {
      @OnEvent('record.upserted')
      index(event: Record<string, unknown>): void {
        heard.push(event['at'], event['record']);
      }
    }
    await using app = await startApp({ outbox: store(), providers: [Index] });
    const record = { id: 1 };
    await publisherOf(app).publishAsync('record.upserted', { at: new Date(0), record });
    expect(heard).toEqual(['1970-01-01T00:00:00.000Z', { id: 1 }]);
    expect(heard[1]).not.toBe(record);
  });

  it.each<[string, unknown, unknown, string]>([
    ['no event type', undefined, {}, 'eventType must be a string'],
    ['the emitter’s own type', 'error', {}, 'has a meaning of its own'],
    ['an array', 'a', [], 'payload must be a plain JSON object, got an Array'],
    ['null', 'a', null, 'payload must be a plain JSON object, got null'],
    ['what JSON cannot hold', 'a', { price: { net: NaN } }, 'payload.price.net is NaN'],
    ['a reserved key', 'a', { _outbox: 1 }, 'payload._outbox is set by the outbox itself'],
  ])('refuses %s', async (_, eventType, payload, message) => {
    await using app = await startApp({ outbox: store() });
    const publisher = publisherOf(app);
    await expect(publisher.publishAsync(eventType as never, payload as never)).rejects.toThrow(
      message,
    );
    expect(() => publisher.publish(eventType as never, payload as never)).toThrow(message);
  });
});

describe('publish', () => {
  it('is fire and forget: a listener’s failure is logged with its name', async () => {
    class Index {
      @OnEvent('record.upserted')
      async on(): Promise<void> {
        throw new Error('the queue is down');
      }
    }
    await using app = await startApp({ outbox: store(), providers: [Index] });
    expect(publisherOf(app).publish('record.upserted', {})).toBeUndefined();
    await untilPasses(
      () =>
        expect(app.log.messages('error')).toEqual([
          expect.stringMatching(
            /^published record\.upserted [0-9a-f-]{36}: record\.upserted failed: Index\.on: the queue is down$/,
          ),
        ]),
      { what: 'it is logged' },
    );
  });

  it('is never an unhandled rejection, whatever a listener throws', async () => {
    const thrown: unknown[] = [new Error('a'), 'text', null, undefined, 42, { no: 'error' }];
    class Index {
      @OnEvent('record.upserted')
      async on({ n }: { n: number }): Promise<void> {
        throw thrown[n];
      }
    }
    await using app = await startApp({ outbox: store(), providers: [Index] });
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on('unhandledRejection', note);
    try {
      for (const n of thrown.keys()) publisherOf(app).publish('record.upserted', { n });
      publisherOf(app).publish('nobody.listens', {});
      await until(() => app.log.messages('error').length === thrown.length + 1, {
        what: 'all are logged',
      });
      await new Promise((resolve) => setImmediate(resolve));
    } finally {
      process.off('unhandledRejection', note);
    }
    expect(unhandled).toEqual([]);
    expect(app.log.messages('error').join()).toContain('nobody in this process listens');
  });

  it('calls listeners at once when they are attached, as an emit does', async () => {
    let heard = 0;
    class Index {
      @OnEvent('record.upserted')
      on(): void {
        heard++;
      }
    }
    await using app = await startApp({ outbox: store(), providers: [Index] });
    await publisherOf(app).publishAsync('record.upserted', {});
    publisherOf(app).publish('record.upserted', {});
    expect(heard).toBe(2);
  });

  it('from an awaited listener it does not make the caller wait: a slow consumer moves to another topic', async () => {
    const go = deferred();
    const done: string[] = [];
    @Injectable()
    class Index {
      constructor(private readonly publisher: BootstrapPublisher) {}
      @OnEvent('record.upserted')
      async on(): Promise<void> {
        this.publisher.publish('record.upserted.analytics', {});
        done.push('index');
      }
    }
    class Analytics {
      @OnEvent('record.upserted.analytics')
      async on(): Promise<void> {
        await go.promise;
        done.push('analytics');
      }
    }
    await using app = await startApp({ outbox: store(), providers: [Index, Analytics] });
    await publisherOf(app).publishAsync('record.upserted', {});
    expect(done).toEqual(['index']);
    go.resolve();
    await until(() => done.length === 2, { what: 'analytics is done' });
  });
});

it('an application that was never initialised says so instead of hanging', async () => {
  const module = await Test.createTestingModule({
    imports: [
      EventEmitterModule.forRoot(),
      OutboxModule.forRoot({ ...store(), relay: { listenerTimeoutMs: 20 } }),
    ],
  })
    .setLogger(new RecordingLogger())
    .compile();
  await expect(module.get(BootstrapPublisher).publishAsync('a', {})).rejects.toThrow(
    'has the application been initialised',
  );
});
