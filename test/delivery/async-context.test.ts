import { expect, it } from '@jest/globals';
import { OnEvent } from '@nestjs/event-emitter';
import { AsyncLocalStorage } from 'node:async_hooks';
import { InMemoryOutboxStore } from '../../src/testing.js';
import { startApp } from '../support/outbox-app.js';
import { deferred } from '../support/until.js';

const REQUEST = new AsyncLocalStorage<string>();

it('a listener does not run in the context of the request whose enqueue woke the relay', async () => {
  const seen = deferred<string | undefined>();
  class Listener {
    @OnEvent('a')
    handle(): void {
      seen.resolve(REQUEST.getStore());
    }
  }
  await using app = await startApp({
    outbox: { store: new InMemoryOutboxStore(), relay: {} },
    providers: [Listener],
  });
  await REQUEST.run('a request of alice', () => app.outbox.enqueue('a', {}));
  expect(await seen.promise).toBeUndefined();
});

it('nor in that of the request that enqueued it for later', async () => {
  const seen = deferred<string | undefined>();
  class Listener {
    @OnEvent('a')
    handle(): void {
      seen.resolve(REQUEST.getStore());
    }
  }
  await using app = await startApp({
    outbox: { store: new InMemoryOutboxStore(), relay: {} },
    providers: [Listener],
  });
  await REQUEST.run('a request of alice', () => app.outbox.enqueue('a', {}, {}, { delayMs: 20 }));
  expect(await seen.promise).toBeUndefined();
});

it('nor in that of the listener that enqueued it', async () => {
  const seen = deferred<string | undefined>();
  class Listener {
    @OnEvent('first')
    async first(): Promise<void> {
      await REQUEST.run('the first listener', () => app.outbox.enqueue('second', {}));
    }

    @OnEvent('second')
    second(): void {
      seen.resolve(REQUEST.getStore());
    }
  }
  await using app = await startApp({
    outbox: { store: new InMemoryOutboxStore(), relay: {} },
    providers: [Listener],
  });
  await app.outbox.enqueue('first', {});
  expect(await seen.promise).toBeUndefined();
});

it('a context that a listener opens is its own, across everything it awaits', async () => {
  const seen: (string | undefined)[] = [];
  class Listener {
    @OnEvent('a')
    async one(): Promise<void> {
      await REQUEST.run('one', async () => {
        await Promise.resolve();
        seen.push(REQUEST.getStore());
      });
    }

    @OnEvent('a')
    async two(): Promise<void> {
      await Promise.resolve();
      seen.push(REQUEST.getStore());
    }
  }
  await using app = await startApp({
    outbox: { store: new InMemoryOutboxStore() },
    providers: [Listener],
  });
  await app.outbox.enqueue('a', {});
  await app.outbox.processPending();
  expect(new Set(seen)).toEqual(new Set(['one', undefined]));
});
