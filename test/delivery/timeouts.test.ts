import { afterEach, describe, expect, it } from '@jest/globals';
import { Inject, Injectable, Scope } from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import type { Delivered } from '../../src/index.js';
import { InMemoryOutboxStore } from '../../src/testing.js';
import { startApp } from '../support/outbox-app.js';
import { deferred, until, type Deferred } from '../support/until.js';

const TIMED_OUT = 'timed out after 100 ms (option relay.listenerTimeoutMs)';

describe('a listener that hangs', () => {
  const hanging: Deferred<string>[] = [];
  afterEach(() => {
    for (const hung of hanging.splice(0)) hung.resolve('too late');
  });
  const signals: AbortSignal[] = [];
  class Listener {
    @OnEvent('hang')
    async hang({ _outbox }: Delivered<'hang'>): Promise<string> {
      signals.push(_outbox.signal);
      const hung = deferred<string>();
      hanging.push(hung);
      return hung.promise;
    }

    @OnEvent('hang')
    quick(): void {}

    @OnEvent('fine')
    fine(): void {}
  }
  const start = (relay = { listenerTimeoutMs: 100, concurrency: 2 }) =>
    startApp({ outbox: { store: new InMemoryOutboxStore(), relay }, providers: [Listener] });

  it('is given up after its time, as a failure that says so, and holds nobody else up', async () => {
    await using app = await start();
    const hung = await app.outbox.enqueue('hang', {});
    const others = await app.outbox.enqueueMany([
      { eventType: 'fine', payload: {} },
      { eventType: 'fine', payload: {} },
    ]);
    for (const { id } of others) await app.eventIn('COMPLETED', id);
    await until(() => hanging.length === 1, { what: 'it hangs' });

    await until(async () => (await app.event(hung.id)).retryCount === 1, { what: 'it has failed' });
    expect(await app.event(hung.id)).toMatchObject({
      status: 'PENDING',
      lastError: `Listener.hang: ${TIMED_OUT}`,
      acknowledgedBy: ['Listener.quick'],
    });
  });

  it('holds one place only: more of them than there are places do not stop the relay for good', async () => {
    await using app = await start();
    await app.outbox.enqueueMany(
      Array.from({ length: 5 }, () => ({ eventType: 'hang', payload: {} })),
    );
    const { id } = await app.outbox.enqueue('fine', {});
    await app.eventIn('COMPLETED', id);
    expect(hanging).toHaveLength(5);
  });

  it.each([
    ['success', (hung: Deferred<string>) => hung.resolve('late')],
    ['failure', (hung: Deferred<string>) => hung.reject(new Error('late'))],
  ])('and comes to an end after all: its late %s changes nothing', async (_, end) => {
    await using app = await start();
    const { id } = await app.outbox.enqueue('hang', {});
    await until(async () => (await app.event(id)).retryCount === 1, { what: 'it has failed' });
    const before = await app.event(id);
    const [hung] = hanging;
    if (hung !== undefined) end(hung);
    await hung?.promise.catch(() => {});
    // Whatever its end set going has had its turn when the next event is through.
    const next = await app.outbox.enqueue('fine', {});
    await app.eventIn('COMPLETED', next.id);
    expect(await app.event(id)).toEqual(before);
  });

  it('is told by its AbortSignal, with the reason', async () => {
    signals.splice(0);
    await using app = await start();
    const { id } = await app.outbox.enqueue('hang', {});
    await until(() => signals.length === 1, { what: 'it hangs' });
    const [signal] = signals;
    expect(signal?.aborted).toBe(false);
    await until(async () => (await app.event(id)).retryCount === 1, { what: 'it has failed' });
    expect(signal?.aborted).toBe(true);
    expect(signal?.reason).toEqual(new Error(TIMED_OUT));
  });
});

it('a signal asked for only after the time has run out is aborted already', async () => {
  const asked = deferred<AbortSignal>();
  const again = deferred();
  class Late {
    @OnEvent('a')
    async handle(event: Delivered<'a'>): Promise<void> {
      await again.promise;
      asked.resolve(event._outbox.signal);
    }
  }
  await using app = await startApp({
    outbox: { store: new InMemoryOutboxStore(), relay: { listenerTimeoutMs: 50 } },
    providers: [Late],
  });
  const { id } = await app.outbox.enqueue('a', {});
  await until(async () => (await app.event(id)).retryCount === 1, { what: 'it has failed' });
  again.resolve();
  expect((await asked.promise).aborted).toBe(true);
});

it('a listener whose provider is never created is timed out, and does not run when it comes after all', async () => {
  const SLOW = Symbol('slow');
  const slow = deferred<object>();
  const created = deferred();
  let calls = 0;
  @Injectable({ scope: Scope.REQUEST })
  class NeedsSlow {
    constructor(@Inject(SLOW) readonly dependency: object) {
      if (dependency instanceof Map) created.resolve();
    }

    @OnEvent('a')
    handle(): void {
      calls++;
    }
  }
  await using app = await startApp({
    outbox: { store: new InMemoryOutboxStore(), relay: { listenerTimeoutMs: 50 } },
    providers: [NeedsSlow, { provide: SLOW, scope: Scope.REQUEST, useFactory: () => slow.promise }],
  });
  const { id } = await app.outbox.enqueue('a', {});
  await until(async () => (await app.event(id)).retryCount === 1, { what: 'it has failed' });
  expect((await app.event(id)).lastError).toBe(
    'NeedsSlow.handle: was not called: timed out after 50 ms (option relay.listenerTimeoutMs)',
  );
  slow.resolve(new Map());
  await created.promise;
  await new Promise((resolve) => setImmediate(resolve));
  expect(calls).toBe(0);
});
