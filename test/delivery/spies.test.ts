// oxlint-disable typescript/unbound-method -- jest asks for the method
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Injectable, Scope } from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import { InMemoryOutboxStore } from '../../src/testing.js';
import { startApp, type OutboxApp } from '../support/outbox-app.js';

class Listener {
  @OnEvent('a')
  async handle(_event: object): Promise<string> {
    return 'for real';
  }
}

@Injectable({ scope: Scope.REQUEST })
class PerRequest {
  @OnEvent('a')
  async handle(_event: object): Promise<string> {
    return 'for real';
  }
}

const start = (providers: (typeof Listener)[]) =>
  startApp({ outbox: { store: new InMemoryOutboxStore() }, providers });

async function deliver(app: OutboxApp) {
  const { id } = await app.outbox.enqueue('a', { n: 1 });
  await app.outbox.processPending();
  return app.event(id);
}

afterEach(() => void jest.restoreAllMocks());

describe.each([
  ['the instance of a listener', Listener, (app: OutboxApp) => app.module.get(Listener)],
  ['the prototype of a listener', Listener, () => Listener.prototype],
  ['the prototype of a request-scoped listener', PerRequest, () => PerRequest.prototype],
])('jest.spyOn after the start, on %s', (_, Class, target) => {
  it('that only watches sees the call, and the listener runs', async () => {
    await using app = await start([Class]);
    const spy = jest.spyOn(target(app), 'handle');
    expect((await deliver(app)).status).toBe('COMPLETED');
    expect(spy).toHaveBeenCalledTimes(1);
    expect(spy).toHaveBeenCalledWith(expect.objectContaining({ n: 1 }));
    await expect(spy.mock.results[0]?.value).resolves.toBe('for real');
    // As read back from the listener, which is how most tests ask.
    expect(target(app).handle).toHaveBeenCalledTimes(1);
  });

  it('with an implementation that fails is a failure of that listener', async () => {
    await using app = await start([Class]);
    const spy = jest.spyOn(target(app), 'handle').mockRejectedValue(new Error('mocked'));
    expect(await deliver(app)).toMatchObject({
      status: 'PENDING',
      lastError: `${Class.name}.handle: mocked`,
    });
    expect(spy).toHaveBeenCalledTimes(1);
  });

  it('with an implementation that succeeds is a success', async () => {
    await using app = await start([Class]);
    jest.spyOn(target(app), 'handle').mockImplementation(async () => 'mocked');
    expect((await deliver(app)).status).toBe('COMPLETED');
  });

  it('put on, taken off and put on again is still told truthfully', async () => {
    await using app = await start([Class]);
    const original = target(app).handle;
    const first = jest.spyOn(target(app), 'handle').mockRejectedValue(new Error('one'));
    expect((await deliver(app)).lastError).toContain('one');
    first.mockRestore();
    expect(target(app).handle).toBe(original);
    expect((await deliver(app)).status).toBe('COMPLETED');
    jest.spyOn(target(app), 'handle').mockRejectedValueOnce(new Error('two'));
    expect((await deliver(app)).lastError).toContain('two');
    expect((await deliver(app)).status).toBe('COMPLETED');
  });
});
