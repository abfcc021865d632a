import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Injectable, Scope } from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import { NonRetryableError, type OutboxModuleOptions } from '../../src/index.js';
import { startApp } from '../support/outbox-app.js';
import { openRestingPlace, RESTING_PLACES, type RestingPlace } from '../support/resting-place.js';
import { deferred, until } from '../support/until.js';

const MINUTE_MS = 60_000;

describe.each(RESTING_PLACES)('with events in %s', (kind) => {
  let place: RestingPlace;
  let outbox: OutboxModuleOptions;

  beforeAll(async () => {
    place = await openRestingPlace(kind);
  });
  beforeEach(async () => {
    outbox = await place.empty();
  });
  afterAll(() => place.close());

  describe('a listener that throws', () => {
    const fail = (): never => {
      throw new Error('the printer is on fire');
    };
    class Plain {
      @OnEvent('a')
      handle(): void {
        fail();
      }
    }
    class Async {
      @OnEvent('a')
      async handle(): Promise<void> {
        await Promise.resolve();
        fail();
      }
    }
    class Loud {
      @OnEvent('a', { suppressErrors: false })
      handle(): void {
        fail();
      }
    }
    class Quiet {
      @OnEvent('a', { suppressErrors: true })
      async handle(): Promise<void> {
        fail();
      }
    }
    @Injectable({ scope: Scope.REQUEST })
    class PerRequest {
      @OnEvent('a')
      async handle(): Promise<void> {
        fail();
      }
    }
    @Injectable({ scope: Scope.REQUEST })
    class LoudPerRequest {
      @OnEvent('a', { suppressErrors: false })
      handle(): void {
        fail();
      }
    }

    it.each([Plain, Async, Loud, Quiet, PerRequest, LoudPerRequest])(
      'keeps its event pending, two minutes on, with its name and reason: %p',
      async (Listener) => {
        await using app = await startApp({ outbox, providers: [Listener] });
        const { id } = await app.outbox.enqueue('a', {});
        const before = await app.event(id);
        expect(await app.outbox.processPending()).toBe(1);

        const event = await app.event(id);
        expect(event).toMatchObject({
          status: 'PENDING',
          retryCount: 1,
          lastError: `${Listener.name}.handle: the printer is on fire`,
          acknowledgedBy: [],
        });
        const delay = event.scheduledAt.getTime() - before.createdAt.getTime();
        expect(delay).toBeGreaterThanOrEqual(2 * MINUTE_MS);
        expect(delay).toBeLessThan(2 * MINUTE_MS + 5_000);

        // Not due again yet, and not called again.
        expect(await app.outbox.processPending()).toBe(0);
      },
    );
  });

  it('whatever a listener throws is told in readable text, and the others in the batch go on', async () => {
    const thrown: [unknown, string][] = [
      ['text', 'text'],
      [null, 'null was thrown'],
      [undefined, 'undefined was thrown'],
      [42, '42 was thrown'],
      [{ code: 'X' }, '{"code":"X"} was thrown'],
      [Symbol('s'), 'Symbol(s) was thrown'],
      ['', 'an empty string was thrown'],
      [new Error(), 'an error without a message was thrown'],
      ['nul \0 and half \ud83d', 'nul \ufffd and half \ufffd'],
      [new Error('very long '.repeat(1_000)), 'very long very long'],
    ];
    class Throwing {
      @OnEvent('a')
      handle({ index, late }: { index: number; late: boolean }): unknown {
        const [reason] = thrown[index] ?? [];
        // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- this is about what is no Error
        if (late) return Promise.reject(reason);
        throw reason;
      }

      @OnEvent('fine')
      fine(): void {}
    }
    await using app = await startApp({ outbox, providers: [Throwing] });
    const cases = [false, true].flatMap((late) => thrown.map((_, index) => ({ index, late })));
    const enqueued = await app.outbox.enqueueMany([
      ...cases.map((payload) => ({ eventType: 'a', payload })),
      { eventType: 'fine', payload: {} },
    ]);
    expect(await app.outbox.processPending()).toBe(enqueued.length);

    expect((await app.event(enqueued.at(-1)?.id ?? '')).status).toBe('COMPLETED');
    for (const [position, { index }] of cases.entries()) {
      const { status, retryCount, lastError } = await app.event(enqueued[position]?.id ?? '');
      expect({ status, retryCount }).toEqual({ status: 'PENDING', retryCount: 1 });
      expect(lastError).toContain(`Throwing.handle: ${thrown[index]?.[1]}`);
      expect(lastError?.length).toBeLessThanOrEqual(2_000);
    }
  });

  it('every listener is waited for before a failure is written, and named if it failed', async () => {
    const slow = deferred();
    const log: string[] = [];
    class Quick {
      @OnEvent('a')
      handle(): void {
        log.push('quick failed');
        throw new Error('quick');
      }
    }
    class Loud {
      @OnEvent('a', { suppressErrors: false })
      async handle(): Promise<void> {
        throw new Error('loud');
      }
    }
    class Slow {
      @OnEvent('a')
      async handle(): Promise<void> {
        log.push('slow started');
        await slow.promise;
        log.push('slow ended');
      }
    }
    await using app = await startApp({ outbox, providers: [Quick, Loud, Slow] });
    const { id } = await app.outbox.enqueue('a', {});
    const pass = app.outbox.processPending();
    await until(() => log.length === 2, { what: 'both have been called' });

    // As if its retry were due by now: the first run is not over, so the event is nobody else's.
    await place.age(3 * MINUTE_MS);
    expect((await app.event(id)).status).toBe('PROCESSING');
    expect(await app.outbox.processPending()).toBe(0);

    slow.resolve();
    await pass;
    expect(log).toEqual(['quick failed', 'slow started', 'slow ended']);
    expect(await app.event(id)).toMatchObject({
      status: 'PENDING',
      lastError: 'Quick.handle: quick; Loud.handle: loud',
      acknowledgedBy: ['Slow.handle'],
    });
  });

  it('a listener that has succeeded is not called again when another one is retried', async () => {
    const calls: string[] = [];
    let healthy = false;
    class Good {
      @OnEvent('a')
      handle(): void {
        calls.push('good');
      }
    }
    class Bad {
      @OnEvent('a')
      async handle(): Promise<void> {
        calls.push('bad');
        if (!healthy) throw new Error('not yet');
      }
    }
    @Injectable({ scope: Scope.REQUEST })
    class GoodPerRequest {
      @OnEvent('a')
      handle(): void {
        calls.push('good per request');
      }
    }
    await using app = await startApp({ outbox, providers: [Good, Bad, GoodPerRequest] });
    const { id } = await app.outbox.enqueue('a', {});
    await app.outbox.processPending();
    expect(calls.splice(0).toSorted()).toEqual(['bad', 'good', 'good per request']);

    await place.age(2 * MINUTE_MS);
    await app.outbox.processPending();
    expect(calls.splice(0)).toEqual(['bad']);
    expect(await app.event(id)).toMatchObject({
      retryCount: 2,
      acknowledgedBy: ['Good.handle', 'GoodPerRequest.handle'],
    });

    healthy = true;
    await place.age(4 * MINUTE_MS);
    await app.outbox.processPending();
    expect(calls).toEqual(['bad']);
    expect(await app.event(id)).toMatchObject({ status: 'COMPLETED', retryCount: 2 });
  });

  it('the waits are 2, 4, 8 and 16 minutes, and the 5th failure is the last', async () => {
    let calls = 0;
    class Failing {
      @OnEvent('a')
      handle(): void {
        throw new Error(`failure ${++calls}`);
      }
    }
    await using app = await startApp({ outbox, providers: [Failing] });
    const { id } = await app.outbox.enqueue('a', {});
    for (const minutes of [2, 4, 8, 16]) {
      await app.outbox.processPending();
      expect(await app.event(id)).toMatchObject({ status: 'PENDING', retryCount: calls });
      // Just short of its time it is not due; a moment later it is.
      await place.age(minutes * MINUTE_MS - 2_000);
      expect(await app.outbox.processPending()).toBe(0);
      await place.age(2_000);
    }
    await app.outbox.processPending();
    expect(await app.event(id)).toMatchObject({
      status: 'FAILED',
      retryCount: 5,
      lastError: 'Failing.handle: failure 5',
    });
    await place.age(64 * MINUTE_MS);
    expect(await app.outbox.processPending()).toBe(0);
    expect(calls).toBe(5);
  });

  it.each([
    ['one attempt', 1, 1],
    ['forty attempts', 40, 40],
  ])('with %s allowed it is set aside at that failure', async (_, maxRetries, failures) => {
    class Failing {
      @OnEvent('a')
      handle(): void {
        throw new Error('no');
      }
    }
    await using app = await startApp({
      outbox: { ...outbox, retry: { maxRetries } },
      providers: [Failing],
    });
    const { id } = await app.outbox.enqueue('a', {});
    for (let failure = 1; failure <= failures; failure++) {
      expect((await app.event(id)).status).toBe('PENDING');
      await app.outbox.processPending();
      expect((await app.event(id)).retryCount).toBe(failure);
      // No wait is longer than the cap, a day: 2^40 minutes would be out of every range.
      await place.age(24 * 60 * MINUTE_MS);
    }
    expect((await app.event(id)).status).toBe('FAILED');
  });

  it('NonRetryableError alone makes a dead letter at once', async () => {
    class Hopeless {
      @OnEvent('a')
      handle(): void {
        throw new NonRetryableError('there is no such quote');
      }
    }
    class Fine {
      @OnEvent('a')
      handle(): void {}
    }
    await using app = await startApp({ outbox, providers: [Hopeless, Fine] });
    const { id } = await app.outbox.enqueue('a', {});
    await app.outbox.processPending();
    expect(await app.event(id)).toMatchObject({
      status: 'FAILED',
      retryCount: 1,
      lastError: 'Hopeless.handle: NonRetryableError: there is no such quote',
      acknowledgedBy: ['Fine.handle'],
    });
  });

  it('NonRetryableError beside a failure that a retry may mend is retried', async () => {
    class Hopeless {
      @OnEvent('a')
      handle(): void {
        throw new NonRetryableError('never');
      }
    }
    class Unlucky {
      @OnEvent('a')
      handle(): void {
        throw new Error('try again');
      }
    }
    await using app = await startApp({ outbox, providers: [Hopeless, Unlucky] });
    const { id } = await app.outbox.enqueue('a', {});
    await app.outbox.processPending();
    expect(await app.event(id)).toMatchObject({ status: 'PENDING', retryCount: 1 });
  });
});
