import { describe, expect, it, jest } from '@jest/globals';
import { Injectable, Module } from '@nestjs/common';
import { EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import { Test } from '@nestjs/testing';
import { OutboxModule, OutboxService } from '../src/index.js';
import { deliverDue, InMemoryOutboxStore, OUTBOX_MODULE_OPTIONS } from '../src/testing.js';
import { startApp, type OutboxApp } from './support/outbox-app.js';
import { openRestingPlace, RESTING_PLACES } from './support/resting-place.js';

// An application, and its tests as its developer would write them.

@Injectable()
class QuoteRequests {
  constructor(private readonly outbox: OutboxService) {}

  async create(quoteRequestId: string): Promise<void> {
    await this.outbox.enqueue('quote_request.created', { quoteRequestId });
  }
}

@Injectable()
class Notifications {
  constructor(private readonly outbox: OutboxService) {}

  @OnEvent('quote_request.created')
  async notify({ quoteRequestId }: { quoteRequestId: string }): Promise<void> {
    await this.outbox.enqueue('mail.wanted', { about: quoteRequestId });
  }

  @OnEvent('mail.wanted')
  send(_mail: { about: string }): void {}
}

@Module({
  imports: [
    EventEmitterModule.forRoot(),
    OutboxModule.forRootAsync({
      useFactory: () => ({ connectionString: 'postgres://nobody@nowhere.invalid/none' }),
    }),
  ],
  providers: [QuoteRequests, Notifications],
})
class AppModule {}

describe('the tests of an application', () => {
  async function start() {
    const store = new InMemoryOutboxStore();
    const module = await Test.createTestingModule({ imports: [AppModule] })
      .overrideProvider(OUTBOX_MODULE_OPTIONS)
      .useValue({ store, relay: false })
      .compile();
    const app = await module.init();
    return { app, store, [Symbol.asyncDispose]: () => app.close() };
  }

  it('run without a database: the service enqueues, the listeners are called', async () => {
    await using test = await start();
    const notify = jest.spyOn(test.app.get(Notifications), 'notify');
    await test.app.get(QuoteRequests).create('q-1');
    expect(notify).not.toHaveBeenCalled();

    // What a listener enqueues is delivered as well.
    expect(await deliverDue(test.app)).toMatchObject([
      { eventType: 'quote_request.created', status: 'COMPLETED' },
      { eventType: 'mail.wanted', payload: { about: 'q-1' }, status: 'COMPLETED' },
    ]);
    expect(notify).toHaveBeenCalledWith(expect.objectContaining({ quoteRequestId: 'q-1' }));
    expect(await deliverDue(test.app)).toEqual([]);
  });

  it('see a failure and its retry without waiting for it', async () => {
    await using test = await start();
    const send = jest.spyOn(test.app.get(Notifications), 'send').mockImplementationOnce(() => {
      throw new Error('the mail server is down');
    });
    await test.app.get(QuoteRequests).create('q-1');
    expect(await deliverDue(test.app)).toMatchObject([
      { status: 'COMPLETED' },
      {
        eventType: 'mail.wanted',
        status: 'PENDING',
        retryCount: 1,
        lastError: 'Notifications.send: the mail server is down',
      },
    ]);
    expect(await deliverDue(test.app)).toEqual([]);

    test.store.advance(2 * 60_000);
    expect(await deliverDue(test.app)).toMatchObject([
      { eventType: 'mail.wanted', status: 'COMPLETED' },
    ]);
    expect(send).toHaveBeenCalledTimes(2);
  });
});

describe.each(RESTING_PLACES)('deliverDue, with events in %s', (kind) => {
  class Listener {
    @OnEvent('fine')
    fine(): void {}

    @OnEvent('failing')
    failing(): void {
      throw new Error('no');
    }
  }

  it('answers each event once, as it is stored, in the order of delivery', async () => {
    const place = await openRestingPlace(kind);
    try {
      const retry = { maxRetries: 3, backoff: () => 0 };
      await using app = await startApp({
        outbox: { ...(await place.empty()), retry },
        providers: [Listener],
      });
      await app.outbox.enqueueMany([
        { eventType: 'failing', payload: {}, scheduledAt: new Date(1_000) },
        { eventType: 'fine', payload: {}, scheduledAt: new Date(2_000) },
        { eventType: 'nobody', payload: {}, scheduledAt: new Date(3_000) },
        { eventType: 'fine', payload: {}, delayMs: 60_000 },
      ]);
      const delivered = await deliverDue(app.module);
      expect(delivered).toMatchObject([
        {
          eventType: 'failing',
          status: 'FAILED',
          retryCount: 3,
          lastError: 'Listener.failing: no',
        },
        { eventType: 'fine', status: 'COMPLETED' },
        { eventType: 'nobody', status: 'PENDING', retryCount: 0 },
      ]);
      expect(delivered).toHaveLength(3);
      expect(await app.outbox.stats()).toMatchObject({ due: 0, scheduled: 2 });
    } finally {
      await place.close();
    }
  });
});

describe('deliverDue says what is wrong', () => {
  const providers = (app: () => OutboxApp) => {
    class Endless {
      @OnEvent('again')
      async handle(): Promise<void> {
        await app().outbox.enqueue('again', {});
      }
    }
    return [Endless];
  };

  it('if there is no end to it', async () => {
    await using app: OutboxApp = await startApp({
      outbox: { store: new InMemoryOutboxStore() },
      providers: providers(() => app),
    });
    await app.outbox.enqueue('again', {});
    await expect(deliverDue(app.module)).rejects.toThrow(
      'after 1000 passes there are still events due: does a listener enqueue what it listens to?',
    );
  });

  it('if the relay is on', async () => {
    await using app = await startApp({ outbox: { store: new InMemoryOutboxStore(), relay: {} } });
    await expect(deliverDue(app.module)).rejects.toThrow('deliverDue needs relay: false');
  });

  it('if the application was not initialised', async () => {
    const module = await Test.createTestingModule({
      imports: [
        EventEmitterModule.forRoot(),
        OutboxModule.forRoot({ store: new InMemoryOutboxStore(), relay: false }),
      ],
    }).compile();
    await expect(deliverDue(module)).rejects.toThrow('await app.init() or app.listen() first');
    await module.close();
  });
});

describe('InMemoryOutboxStore', () => {
  it('has a time of its own that a test moves on', async () => {
    const store = new InMemoryOutboxStore();
    await using app = await startApp({ outbox: { store } });
    app.emitter.on('reminder', () => {});
    await app.outbox.enqueue('reminder', {}, {}, { delayMs: 3 * 24 * 60 * 60_000 });
    expect(await deliverDue(app.module)).toEqual([]);
    store.advance(3 * 24 * 60 * 60_000);
    expect(await deliverDue(app.module)).toMatchObject([{ status: 'COMPLETED' }]);
  });

  it('shows every event it holds, oldest first', async () => {
    const store = new InMemoryOutboxStore();
    await using app = await startApp({ outbox: { store } });
    await app.outbox.enqueue('one', { n: 1 });
    await app.outbox.enqueue('two', { n: 2 });
    expect(store.all()).toMatchObject([
      { eventType: 'one', payload: { n: 1 }, status: 'PENDING' },
      { eventType: 'two', payload: { n: 2 }, status: 'PENDING' },
    ]);
  });
});
