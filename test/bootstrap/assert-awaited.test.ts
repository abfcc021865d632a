import { describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import { assertAwaited, InMemoryOutboxStore } from '../../src/testing.js';
import { startApp } from '../support/outbox-app.js';

@Injectable()
class Queue {
  jobs = 0;
  async add(): Promise<void> {
    this.jobs++;
  }
}

type Handler = (queue: Queue) => unknown;

/** What a test of the application's would say of a listener that does this. */
async function verdict(handler: Handler): Promise<string> {
  @Injectable()
  class Index {
    constructor(private readonly queue: Queue) {}
    @OnEvent('record.upserted')
    on(): unknown {
      return handler(this.queue);
    }
  }
  Reflect.defineMetadata('design:paramtypes', [Queue], Index);
  await using app = await startApp({
    outbox: { store: new InMemoryOutboxStore() },
    providers: [Queue, Index],
  });
  const queue = app.module.get(Queue);
  const checking = assertAwaited(app.module, {
    eventType: 'record.upserted',
    payload: {},
    listener: 'Index.on',
    dependency: queue,
    method: 'add',
  });
  const answer = await checking.then(
    () => 'awaited',
    (error: unknown) => (error as Error).message,
  );
  // Mended in any case.
  await queue.add();
  expect(Object.hasOwn(queue, 'add')).toBe(false);
  return answer;
}

describe('assertAwaited', () => {
  it.each<[string, Handler]>([
    [
      'awaits',
      async (queue) => {
        await queue.add();
      },
    ],
    ['returns the promise', (queue) => queue.add()],
    ['awaits it among others', async (queue) => Promise.all([queue.add(), Promise.resolve()])],
    [
      'wraps the error',
      async (queue) => {
        try {
          await queue.add();
        } catch (cause) {
          throw new Error('could not index', { cause });
        }
      },
    ],
  ])('passes for a listener that %s', async (_, handler) => {
    expect(await verdict(handler)).toBe('awaited');
  });

  it.each<[string, Handler]>([
    ['does not await', async (queue) => void queue.add()],
    ['leaves a chain behind', (queue) => void queue.add().then(() => {})],
    ['swallows the error', async (queue) => queue.add().catch(() => {})],
    [
      'starts it in an async function that nobody awaits',
      (queue) => {
        void (async () => {
          await queue.add();
        })();
      },
    ],
  ])('fails for a listener that %s', async (_, handler) => {
    expect(await verdict(handler)).toContain('Index.on does not await Queue.add');
  });

  it('fails when the dependency is never called: nothing was proved', async () => {
    expect(await verdict(() => {})).toContain('Queue.add was never called');
  });

  it('fails when the listener fails of something else', async () => {
    const handler = async (queue: Queue): Promise<void> => {
      queue.add().catch(() => {});
      throw new Error('of something else');
    };
    expect(await verdict(handler)).toContain('Index.on failed, but not of Queue.add');
  });

  it('fails when nobody listens, and refuses what is no method', async () => {
    await using app = await startApp({
      outbox: { store: new InMemoryOutboxStore() },
      providers: [Queue],
    });
    const wanted = { eventType: 'a', payload: {}, listener: 'Index.on', method: 'add' } as const;
    const dependency = app.module.get(Queue);
    await expect(assertAwaited(app.module, { ...wanted, dependency })).rejects.toThrow(
      'nothing was delivered: OutboxError: nobody in this process listens',
    );
    await expect(
      assertAwaited(app.module, { ...wanted, dependency, method: 'jobs' }),
    ).rejects.toThrow('method must be the name of a method of dependency, got jobs');
  });
});
