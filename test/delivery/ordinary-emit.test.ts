import { describe, expect, it } from '@jest/globals';
import { Injectable, Scope, type Type } from '@nestjs/common';
import { EventEmitter2, EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import { Test } from '@nestjs/testing';
import { OutboxModule } from '../../src/index.js';
import { InMemoryOutboxStore } from '../../src/testing.js';
import { startApp } from '../support/outbox-app.js';
import { RecordingLogger } from '../support/logger.js';

// The user's emitter behaves as before. "As before" is measured: the same thing is done in an application without
// the outbox and in one with it. Classes are made anew for each, for the outbox changes their prototypes.

function listeners(heard: unknown[]): Type[] {
  class Answers {
    @OnEvent('answers')
    sync(...args: unknown[]): string {
      heard.push(['sync', this.constructor.name, ...args]);
      return 'sync';
    }

    @OnEvent('answers')
    async async(...args: unknown[]): Promise<string> {
      heard.push(['async', ...args]);
      return 'async';
    }
  }
  class Fails {
    @OnEvent('fails')
    sync(): never {
      throw new Error('sync failed');
    }

    @OnEvent('fails')
    async async(): Promise<never> {
      throw new Error('async failed');
    }

    @OnEvent('fails loudly', { suppressErrors: false })
    loud(): never {
      throw new Error('loud failed');
    }
  }
  @Injectable({ scope: Scope.REQUEST })
  class PerRequest {
    @OnEvent('per request')
    handle(event: unknown): unknown {
      return event;
    }
  }
  @Injectable()
  class Nested {
    constructor(private readonly emitter: EventEmitter2) {}

    @OnEvent('nested')
    async handle(event: object): Promise<unknown> {
      return [
        await this.emitter.emitAsync('answers', event),
        await this.emitter.emitAsync('fails', event),
        await this.emitter.emitAsync('fails loudly', event).catch((error: unknown) => error),
        await this.emitter.emitAsync('per request', event),
        this.emitter.emit('answers', event),
        this.emitter.emit('nobody', event),
      ];
    }
  }
  return [Answers, Fails, PerRequest, Nested];
}

/** Everything that can be seen of an emit from outside. */
async function see(withOutbox: boolean, act: (emitter: EventEmitter2) => unknown) {
  const heard: unknown[] = [];
  const log = new RecordingLogger();
  const outbox = OutboxModule.forRoot({ store: new InMemoryOutboxStore(), relay: false });
  const module = await Test.createTestingModule({
    imports: [EventEmitterModule.forRoot(), ...(withOutbox ? [outbox] : [])],
    providers: listeners(heard),
  })
    .setLogger(log)
    .compile();
  await module.init();
  try {
    const answer = await Promise.resolve(act(module.get(EventEmitter2))).then(
      (value: unknown) => ({ value }),
      (error: unknown) => ({ error }),
    );
    await new Promise((resolve) => setImmediate(resolve));
    const logged = log.lines.filter(({ context }) => context === 'Event' || context === 'Outbox');
    return {
      answer,
      heard,
      logged: logged.map(({ level, context, message }) => ({ level, context, message })),
    };
  } finally {
    await module.close();
  }
}

describe('an ordinary emit behaves as without the outbox', () => {
  const event = { n: 1 };
  it.each<[string, (emitter: EventEmitter2) => unknown]>([
    ['emitAsync and its answers', (emitter) => emitter.emitAsync('answers', event)],
    ['emitAsync with many arguments', (emitter) => emitter.emitAsync('answers', 1, 'two', event)],
    ['emitAsync without any', (emitter) => emitter.emitAsync('answers')],
    ['emit', (emitter) => emitter.emit('answers', event)],
    ['emit to nobody', (emitter) => emitter.emit('nobody', event)],
    ['emitAsync to nobody', (emitter) => emitter.emitAsync('nobody', event)],
    ['failures that are logged', (emitter) => emitter.emitAsync('fails', event)],
    ['a failure that is not suppressed', (emitter) => emitter.emitAsync('fails loudly', event)],
    ['a request-scoped listener', (emitter) => emitter.emitAsync('per request', event)],
    ['what a listener emits itself', (emitter) => emitter.emitAsync('nested', event)],
    [
      'a listener taken away by name',
      (emitter) => {
        const [listener] = emitter.listeners('answers');
        if (listener) emitter.off('answers', listener);
        return emitter.emitAsync('answers', event);
      },
    ],
  ])('%s', async (_, act) => {
    const without = await see(false, act);
    const withOutbox = await see(true, act);
    expect(withOutbox).toEqual(without);
  });
});

describe('inside a delivery too', () => {
  it('a listener that emits other events sees what it would see without the outbox', async () => {
    const heard: unknown[] = [];
    const seen: unknown[] = [];
    const classes = listeners(heard);
    @Injectable()
    class Starts {
      constructor(private readonly emitter: EventEmitter2) {}

      @OnEvent('start')
      async handle(event: object): Promise<void> {
        // The very object of the delivery, and another one.
        for (const payload of [event, { n: 2 }]) {
          seen.push(await this.emitter.emitAsync('answers', payload));
          seen.push(await this.emitter.emitAsync('fails', payload));
          seen.push(
            await this.emitter.emitAsync('fails loudly', payload).catch((e: Error) => e.message),
          );
        }
      }
    }
    await using app = await startApp({
      outbox: { store: new InMemoryOutboxStore() },
      providers: [...classes, Starts],
    });
    const { id } = await app.outbox.enqueue('start', {});
    await app.outbox.processPending();

    const once = [['sync', 'async'], [undefined, undefined], 'loud failed'];
    expect(seen).toEqual([...once, ...once]);
    expect(heard).toHaveLength(4);
    expect(await app.event(id)).toMatchObject({
      status: 'COMPLETED',
      acknowledgedBy: [],
      lastError: null,
    });
    const failures = app.log.lines.filter(({ context }) => context === 'Event');
    expect(failures.map(({ message }) => message)).toEqual([
      'sync failed',
      'async failed',
      'sync failed',
      'async failed',
    ]);
  });

  it('a listener that emits its own event again, with the same object, gets an ordinary emit', async () => {
    let depth = 0;
    const answers: unknown[] = [];
    @Injectable()
    class Again {
      constructor(private readonly emitter: EventEmitter2) {}

      @OnEvent('again')
      async handle(event: object): Promise<string> {
        if (depth++ > 0) throw new Error('inner');
        answers.push(await this.emitter.emitAsync('again', event));
        return 'outer';
      }
    }
    await using app = await startApp({
      outbox: { store: new InMemoryOutboxStore() },
      providers: [Again],
    });
    const { id } = await app.outbox.enqueue('again', {});
    await app.outbox.processPending();
    expect(depth).toBe(2);
    expect(answers).toEqual([[undefined]]);
    expect((await app.event(id)).status).toBe('COMPLETED');
  });
});
