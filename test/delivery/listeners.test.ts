// oxlint-disable unicorn/no-thenable -- listeners may answer one
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, Inject, Injectable, Module, Scope, type OnModuleInit } from '@nestjs/common';
import { EventEmitter2, OnEvent } from '@nestjs/event-emitter';
import { InMemoryOutboxStore } from '../../src/testing.js';
import { startApp, type OutboxApp } from '../support/outbox-app.js';
import { deferred } from '../support/until.js';

// Who is called, and whose answer counts. What becomes of the answer is in outcomes.test.ts.

const memory = () => ({ store: new InMemoryOutboxStore() });

/** Enqueues, relays once, and answers what became of the event. */
async function deliver(app: OutboxApp, eventType: string, payload: Record<string, unknown> = {}) {
  const { id } = await app.outbox.enqueue(eventType, payload);
  await app.outbox.processPending();
  return app.event(id);
}

describe('a listener is called, and its answer counts', () => {
  const calls: string[] = [];
  afterEach(() => void calls.splice(0));
  const called = (name: string, { fail }: { fail?: boolean }): void => {
    calls.push(name);
    if (fail) throw new Error(`${name} failed`);
  };

  class Dependency {
    readonly name = 'dependency';
  }

  class Sync {
    @OnEvent('a')
    handle(event: object): void {
      called('Sync', event);
    }
  }

  class Async {
    @OnEvent('a')
    async handle(event: object): Promise<void> {
      await Promise.resolve();
      called('Async', event);
    }
  }

  // What query builders return: nothing happens before somebody waits for it.
  const lazily = (work: () => void): PromiseLike<void>['then'] => {
    return (onDone, onFailed) => Promise.resolve().then(work).then(onDone, onFailed);
  };

  class Thenable {
    @OnEvent('a')
    handle(event: object): PromiseLike<void> {
      return { then: lazily(() => called('Thenable', event)) };
    }
  }

  class CallableThenable {
    @OnEvent('a')
    handle(event: object): PromiseLike<void> {
      return Object.assign(() => {}, { then: lazily(() => called('CallableThenable', event)) });
    }
  }

  @Injectable({ scope: Scope.REQUEST })
  class PerRequest {
    constructor(@Inject(Dependency) private readonly dependency: Dependency) {}

    @OnEvent('a')
    handle(event: object): void {
      called(`PerRequest with its ${this.dependency.name}`, event);
    }
  }

  @Injectable()
  class UsesPerRequest {
    constructor(@Inject(PerRequest) readonly perRequest: PerRequest) {}

    @OnEvent('a')
    handle(event: object): void {
      called('UsesPerRequest', event);
    }
  }

  @Controller()
  class InController {
    @OnEvent('a')
    handle(event: object): void {
      called('InController', event);
    }
  }

  class Base {
    @OnEvent('a')
    handle(event: object): void {
      called(this.constructor.name, event);
    }
  }
  class HeirOne extends Base {}
  class HeirTwo extends Base {}
  class HeirThatCallsSuper extends Base {
    @OnEvent('a')
    override handle(event: object): void {
      super.handle(event);
    }
  }

  class Private {
    readonly #name = 'Private';

    @OnEvent('a')
    handle(event: object): void {
      called(this.#name, event);
    }
  }

  class Array_ {
    @OnEvent(['a'])
    handle(event: object): void {
      called('Array_', event);
    }
  }

  class FirstInLine {
    @OnEvent('a', { prependListener: true })
    handle(event: object): void {
      called('FirstInLine', event);
    }
  }

  class Later {
    @OnEvent('a', { async: true })
    handle(event: object): void {
      called('Later', event);
    }
  }

  class LaterWithPromise {
    @OnEvent('a', { async: true, promisify: true })
    async handle(event: object): Promise<void> {
      await Promise.resolve();
      called('LaterWithPromise', event);
    }
  }

  class NextTick {
    @OnEvent('a', { nextTick: true })
    async handle(event: object): Promise<void> {
      await Promise.resolve();
      called('NextTick', event);
    }
  }

  class Promisified {
    @OnEvent('a', { promisify: true })
    handle(event: object): void {
      called('Promisified', event);
    }
  }

  class Objectified {
    @OnEvent('a', { objectify: true })
    handle(event: object): void {
      called('Objectified', event);
    }
  }

  @Injectable({ scope: Scope.REQUEST })
  class LaterPerRequest {
    @OnEvent('a', { async: true })
    handle(event: object): void {
      called('LaterPerRequest', event);
    }
  }

  @Injectable({ scope: Scope.TRANSIENT })
  class Transient {
    @OnEvent('a')
    handle(event: object): void {
      called('Transient', event);
    }
  }

  it.each([
    [Sync],
    [Async],
    [Thenable],
    [CallableThenable],
    [PerRequest, 'PerRequest with its dependency'],
    [HeirOne],
    [HeirThatCallsSuper],
    [Private],
    [Array_],
    [FirstInLine],
    [Later],
    [LaterWithPromise],
    [NextTick],
    [Promisified],
    [Objectified],
    [LaterPerRequest],
    [Transient],
  ])('%p', async (Listener, name = Listener.name) => {
    await using app = await startApp({ outbox: memory(), providers: [Dependency, Listener] });
    expect(await deliver(app, 'a')).toMatchObject({ status: 'COMPLETED', retryCount: 0 });
    expect(calls).toEqual([name]);
    expect(await deliver(app, 'a', { fail: true })).toMatchObject({
      status: 'PENDING',
      retryCount: 1,
      lastError: `${Listener.name}.handle: ${name} failed`,
    });
    expect(calls).toEqual([name, name]);
  });

  it('in a controller', async () => {
    await using app = await startApp({ outbox: memory(), controllers: [InController] });
    expect((await deliver(app, 'a')).status).toBe('COMPLETED');
    expect((await deliver(app, 'a', { fail: true })).lastError).toBe(
      'InController.handle: InController failed',
    );
  });

  it('that is request-scoped through what it depends on', async () => {
    await using app = await startApp({
      outbox: memory(),
      providers: [Dependency, PerRequest, UsesPerRequest],
    });
    const event = await deliver(app, 'a', { fail: true });
    expect(event.lastError).toContain('UsesPerRequest.handle: UsesPerRequest failed');
    expect(event.lastError).toContain('PerRequest.handle: PerRequest with its dependency failed');
  });

  it('that two classes inherit, each under its own name', async () => {
    await using app = await startApp({ outbox: memory(), providers: [HeirOne, HeirTwo] });
    const event = await deliver(app, 'a', { fail: true });
    expect(calls.toSorted()).toEqual(['HeirOne', 'HeirTwo']);
    expect(event.lastError).toBe('HeirOne.handle: HeirOne failed; HeirTwo.handle: HeirTwo failed');
  });
});

describe('wildcards and namespaces mean what they mean to the emitter', () => {
  const heard: string[] = [];
  afterEach(() => void heard.splice(0));
  class Listener {
    @OnEvent('order.*')
    one(): void {
      heard.push('order.*');
    }

    @OnEvent('order.**')
    any(): void {
      heard.push('order.**');
    }

    @OnEvent(['order', 'created'])
    list(): void {
      heard.push("['order', 'created']");
    }

    @OnEvent('**')
    all({ fail }: { fail?: boolean }): void {
      heard.push('**');
      if (fail) throw new Error('no');
    }
  }

  it.each([
    ['order.created', ['**', "['order', 'created']", 'order.*', 'order.**']],
    ['order.line.added', ['**', 'order.**']],
    ['invoice', ['**']],
  ])('with wildcards: %s', async (eventType, expected) => {
    await using app = await startApp({
      outbox: memory(),
      providers: [Listener],
      emitter: { wildcard: true },
    });
    expect((await deliver(app, eventType)).status).toBe('COMPLETED');
    expect(heard.splice(0).toSorted()).toEqual(expected);

    const failed = await deliver(app, eventType, { fail: true });
    expect(failed.lastError).toBe('Listener.all: no');
    expect(failed.acknowledgedBy).toHaveLength(expected.length - 1);
  });

  it('with another delimiter', async () => {
    class Slashes {
      @OnEvent('order/*')
      handle({ fail }: { fail?: boolean }): void {
        heard.push('order/*');
        if (fail) throw new Error('no');
      }
    }
    await using app = await startApp({
      outbox: memory(),
      providers: [Slashes],
      emitter: { wildcard: true, delimiter: '/' },
    });
    expect((await deliver(app, 'order/created')).status).toBe('COMPLETED');
    expect(heard).toEqual(['order/*']);
    expect((await deliver(app, 'order/created', { fail: true })).lastError).toBe(
      'Slashes.handle: no',
    );
  });

  it('without wildcards a star is a letter like any other', async () => {
    await using app = await startApp({ outbox: memory(), providers: [Listener] });
    expect(await deliver(app, 'order.created')).toMatchObject({ status: 'PENDING', retryCount: 0 });
    expect(heard).toEqual([]);
  });
});

describe('a method with two decorators', () => {
  it('is called for each of its event types', async () => {
    const heard: unknown[] = [];
    class Twice {
      @OnEvent('a')
      @OnEvent('b')
      handle({ from }: { from: string }): void {
        heard.push(from);
      }
    }
    await using app = await startApp({ outbox: memory(), providers: [Twice] });
    expect((await deliver(app, 'a', { from: 'a' })).status).toBe('COMPLETED');
    expect((await deliver(app, 'b', { from: 'b' })).status).toBe('COMPLETED');
    expect(heard).toEqual(['a', 'b']);
  });

  it('that both match is acknowledged only when both calls have succeeded', async () => {
    let calls = 0;
    class Twice {
      @OnEvent('order.*')
      @OnEvent('order.created')
      async handle(): Promise<void> {
        if (++calls === 1) throw new Error('the first call');
      }
    }
    await using app = await startApp({
      outbox: memory(),
      providers: [Twice],
      emitter: { wildcard: true },
    });
    expect(await deliver(app, 'order.created')).toMatchObject({
      status: 'PENDING',
      acknowledgedBy: [],
      lastError: 'Twice.handle: the first call',
    });
    expect(calls).toBe(2);
  });
});

describe('a class that two modules provide', () => {
  it('is called in both, and acknowledged only when both have succeeded', async () => {
    const calls: string[] = [];
    let broken = true;
    class Shared {
      constructor(private readonly home: string) {}

      @OnEvent('a')
      handle(): void {
        calls.push(this.home);
        if (broken && this.home === 'two') throw new Error('not in two');
      }
    }
    const home = (name: string) => ({ provide: Shared, useFactory: () => new Shared(name) });
    @Module({ providers: [home('one')] })
    class One {}
    @Module({ providers: [home('two')] })
    class Two {}
    const store = new InMemoryOutboxStore();
    await using app = await startApp({ outbox: { store }, imports: [One, Two] });

    const { id } = await deliver(app, 'a');
    expect(calls.splice(0).toSorted()).toEqual(['one', 'two']);
    expect(await app.event(id)).toMatchObject({
      status: 'PENDING',
      acknowledgedBy: [],
      lastError: 'Shared.handle: not in two',
    });

    broken = false;
    store.advance(2 * 60_000);
    await app.outbox.processPending();
    expect(calls.toSorted()).toEqual(['one', 'two']);
    expect((await app.event(id)).status).toBe('COMPLETED');
  });
});

describe('a request-scoped listener whose provider cannot be created', () => {
  @Injectable({ scope: Scope.REQUEST })
  class Connection {
    constructor() {
      throw new Error('no tenant in this request');
    }
  }
  @Injectable({ scope: Scope.REQUEST })
  class NeedsIt {
    constructor(@Inject(Connection) readonly connection: Connection) {}

    @OnEvent('a')
    handle(): void {}
  }
  class Healthy {
    static calls = 0;

    @OnEvent('a')
    handle(): void {
      Healthy.calls++;
    }
  }

  it('fails with the reason, long before the timeout, and the others are called', async () => {
    await using app = await startApp({
      outbox: memory(),
      providers: [Connection, NeedsIt, Healthy],
    });
    const startedAt = performance.now();
    const event = await deliver(app, 'a');
    expect(performance.now() - startedAt).toBeLessThan(3_000);
    expect(event).toMatchObject({
      status: 'PENDING',
      retryCount: 1,
      lastError: 'NeedsIt.handle: no tenant in this request',
      acknowledgedBy: ['Healthy.handle'],
    });
    expect(Healthy.calls).toBe(1);
  });

  it('does not take away the time that another one needs to be created', async () => {
    const made: string[] = [];
    @Injectable({ scope: Scope.REQUEST })
    class Slow {
      @OnEvent('a')
      handle(): void {
        made.push('slow');
      }
    }
    const SLOW = Symbol('slow');
    @Injectable({ scope: Scope.REQUEST })
    class NeedsSlow {
      constructor(@Inject(SLOW) readonly slow: object) {}

      @OnEvent('a')
      handle(): void {
        made.push('needs slow');
      }
    }
    await using app = await startApp({
      outbox: memory(),
      providers: [
        Connection,
        NeedsIt,
        Slow,
        NeedsSlow,
        {
          provide: SLOW,
          scope: Scope.REQUEST,
          useFactory: () => new Promise((resolve) => setTimeout(() => resolve({}), 100)),
        },
      ],
    });
    const event = await deliver(app, 'a');
    expect(made.toSorted()).toEqual(['needs slow', 'slow']);
    expect(event.lastError).toBe('NeedsIt.handle: no tenant in this request');
    expect(event.acknowledgedBy.toSorted()).toEqual(['NeedsSlow.handle', 'Slow.handle']);
  });

  it('is given time too if the emitter calls it later', async () => {
    const SLOW = Symbol('slow');
    @Injectable({ scope: Scope.REQUEST })
    class LaterNeedsSlow {
      constructor(@Inject(SLOW) readonly slow: object) {}

      @OnEvent('a', { async: true })
      handle(): void {}
    }
    await using app = await startApp({
      outbox: memory(),
      providers: [
        LaterNeedsSlow,
        {
          provide: SLOW,
          scope: Scope.REQUEST,
          useFactory: () => new Promise((resolve) => setTimeout(() => resolve({}), 100)),
        },
      ],
    });
    expect((await deliver(app, 'a')).status).toBe('COMPLETED');
  });
});

describe('a listener added with emitter.on()', () => {
  const listener = 'a listener added with emitter.on()';
  const listen = (app: OutboxApp, raw: () => unknown) => app.emitter.on('a', raw);
  class Decorated {
    @OnEvent('a')
    handle(): void {}
  }

  it.each([
    ['succeeds', () => {}, { status: 'COMPLETED' }],
    ['resolves', async () => {}, { status: 'COMPLETED' }],
    [
      'throws',
      () => {
        throw new Error('raw');
      },
      { status: 'PENDING', lastError: `${listener}: raw` },
    ],
    [
      'rejects',
      () => Promise.reject(new Error('raw')),
      { status: 'PENDING', lastError: `${listener}: raw` },
    ],
  ])('alone, which %s', async (_, raw, expected) => {
    await using app = await startApp({ outbox: memory() });
    listen(app, raw);
    expect(await deliver(app, 'a')).toMatchObject(expected);
  });

  it('that rejects does not hide what the others did', async () => {
    await using app = await startApp({ outbox: memory(), providers: [Decorated] });
    listen(app, () => Promise.reject(new Error('raw')));
    expect(await deliver(app, 'a')).toMatchObject({
      status: 'PENDING',
      lastError: `${listener}: raw`,
      acknowledgedBy: ['Decorated.handle'],
    });
  });

  it('that rejects does not end the wait for the others', async () => {
    const end = deferred();
    let ended = false;
    class Slow {
      @OnEvent('a')
      async handle(): Promise<void> {
        await end.promise;
        ended = true;
      }
    }
    await using app = await startApp({ outbox: memory(), providers: [Slow] });
    listen(app, () => Promise.reject(new Error('raw')));
    const { id } = await app.outbox.enqueue('a', {});
    const pass = app.outbox.processPending();
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect((await app.event(id)).status).toBe('PROCESSING');
    end.resolve();
    await pass;
    expect(ended).toBe(true);
    expect(await app.event(id)).toMatchObject({
      status: 'PENDING',
      lastError: `${listener}: raw`,
      acknowledgedBy: ['Slow.handle'],
    });
  });

  it('that throws before the others were called is named as the cause, and they as not called', async () => {
    await using app = await startApp({ outbox: memory(), providers: [Decorated] });
    app.emitter.prependListener('a', () => {
      throw new Error('raw');
    });
    const startedAt = performance.now();
    const event = await deliver(app, 'a');
    expect(performance.now() - startedAt).toBeLessThan(500);
    expect(event).toMatchObject({ status: 'PENDING', retryCount: 1, acknowledgedBy: [] });
    expect(event.lastError).toMatch(
      /^a listener added with emitter\.on\(\): raw; Decorated\.handle: was not called/,
    );
  });

  it('that hangs is timed out: the event is not delivered', async () => {
    await using app = await startApp({
      outbox: { ...memory(), relay: { listenerTimeoutMs: 50 } },
      providers: [Decorated],
    });
    listen(app, () => new Promise(() => {}));
    const { id } = await app.outbox.enqueue('a', {});
    await app.eventIn('PROCESSING', id).catch(() => {});
    const event = await app.eventIn('PENDING', id);
    expect(event).toMatchObject({ retryCount: 1, acknowledgedBy: ['Decorated.handle'] });
    expect(event.lastError).toMatch(
      /^a listener added with emitter\.on\(\): timed out after 50 ms/,
    );
  });

  it('with once() is called once', async () => {
    const raw = jest.fn();
    await using app = await startApp({ outbox: memory(), providers: [Decorated] });
    app.emitter.once('a', raw);
    await deliver(app, 'a');
    await deliver(app, 'a');
    expect(raw).toHaveBeenCalledTimes(1);
  });

  it('may emit the same object as another event: whoever hears that has nothing to do with this delivery', async () => {
    class Echo {
      @OnEvent('echo')
      handle(): void {
        throw new Error('the echo failed');
      }
    }
    await using app = await startApp({ outbox: memory(), providers: [Decorated, Echo] });
    app.emitter.on('a', (payload) => void app.emitter.emit('echo', payload));
    expect(await deliver(app, 'a')).toMatchObject({
      status: 'COMPLETED',
      lastError: null,
    });
    // Its error went where it goes without the outbox: to the log.
    expect(app.log.messages('error')).toEqual(['the echo failed']);
  });
});

it('what a raw listener emits meanwhile to the same method, about something else, is no part of the delivery', async () => {
  class Both {
    @OnEvent('a')
    @OnEvent('b')
    handle({ fail }: { fail?: boolean }): void {
      if (fail) throw new Error('b failed');
    }
  }
  await using app = await startApp({ outbox: memory(), providers: [Both] });
  app.emitter.on('a', () => void app.emitter.emit('b', { fail: true }));
  expect(await deliver(app, 'a')).toMatchObject({ status: 'COMPLETED' });
  expect(app.log.messages('error')).toEqual(['b failed']);
});

it('a listener that is decorated only while the application starts counts like any other', async () => {
  @Injectable()
  class Dynamic implements OnModuleInit {
    onModuleInit(): void {
      const handle = Object.getOwnPropertyDescriptor(Dynamic.prototype, 'handle') ?? {};
      OnEvent('a')(Dynamic.prototype, 'handle', handle);
    }

    handle(): void {
      throw new Error('dynamic');
    }
  }
  await using app = await startApp({ outbox: memory(), providers: [Dynamic] });
  expect(await deliver(app, 'a')).toMatchObject({
    status: 'PENDING',
    lastError: 'Dynamic.handle: dynamic',
  });
});

it('a listener that cannot be observed is told at the start', async () => {
  class Frozen {
    @OnEvent('a')
    handle(): void {}
  }
  Object.freeze(Frozen.prototype);
  await expect(startApp({ outbox: memory(), providers: [Frozen] })).rejects.toThrow(
    'Frozen.handle cannot be observed: its class is frozen, or the method is read-only',
  );
});

it('onAny hears everything and does not count as listening', async () => {
  const any = jest.fn();
  await using app = await startApp({ outbox: memory() });
  app.emitter.onAny(any);
  expect(await deliver(app, 'a')).toMatchObject({ status: 'PENDING', retryCount: 0 });
  expect(any).not.toHaveBeenCalled();

  app.emitter.on('a', () => {});
  await deliver(app, 'a');
  expect(any).toHaveBeenCalledTimes(1);
});

it('a listener that was removed from the emitter does not pass for one that has succeeded', async () => {
  class Removed {
    @OnEvent('a')
    handle(): void {}
  }
  await using app = await startApp({ outbox: memory(), providers: [Removed] });
  app.emitter.removeAllListeners('a');
  app.emitter.on('a', () => {});
  const event = await deliver(app, 'a');
  expect(event).toMatchObject({ status: 'PENDING', retryCount: 1 });
  expect(event.lastError).toMatch(/^Removed\.handle: was not called/);
});

it('an event handed to the emitter by the application itself reaches the same listeners, unwatched', async () => {
  const heard: unknown[] = [];
  class Listener {
    @OnEvent('a')
    handle(event: object): string {
      heard.push(event);
      return 'answer';
    }
  }
  await using app = await startApp({ outbox: memory(), providers: [Listener] });
  expect(await app.module.get(EventEmitter2).emitAsync('a', { by: 'hand' })).toEqual(['answer']);
  expect(heard).toEqual([{ by: 'hand' }]);
});
