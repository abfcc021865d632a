import { beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import type { Pump } from '../../src/relay/pump.js';
import type { Relay } from '../../src/relay/relay.js';
import { RelayWorker, type Ticks } from '../../src/relay/relay.worker.js';
import { RecordingLogger } from '../support/logger.js';
import { deferred, until } from '../support/until.js';

describe('a relay worker', () => {
  const done: string[] = [];
  const log = new RecordingLogger();

  const step = (what: string): void => void done.push(what);
  const relay = {
    open: () => step('open'),
    stop: async () => step('stop relay'),
  } as unknown as Relay;
  const pump = {
    wake: () => step('wake'),
    listen: () => step('listen'),
    stop: () => step('stop pump'),
  } as unknown as Pump;
  const ticks: Ticks = {
    start: async () => step('start ticks'),
    stop: async () => step('stop ticks'),
  };
  const ready = { listenersAttached: async () => {}, storeReady: async () => {} };

  beforeEach(() => {
    done.length = 0;
    log.clear();
    Logger.overrideLogger(log);
  });

  it('opens the relay when the listeners are attached, and not before', async () => {
    const attached = deferred();
    const worker = new RelayWorker(
      relay,
      pump,
      { ...ready, listenersAttached: () => attached.promise },
      async () => ticks,
    );
    worker.start();
    await Promise.resolve();
    expect(done).toEqual([]);
    attached.resolve();
    await until(() => done.includes('start ticks'), { what: 'it ticks' });
    expect(done).toEqual(['open', 'wake', 'listen', 'start ticks']);
    await worker.stop();
  });

  it('that does not relay opens it all the same, for passes by hand, and ticks never', async () => {
    const worker = new RelayWorker(relay, pump, ready, undefined);
    worker.start();
    await until(() => done.includes('open'), { what: 'it is open' });
    await worker.stop();
    expect(done).toEqual(['open', 'stop relay', 'stop pump']);
  });

  it('whose store is not ready tries again, listens once, and opens its ticks once', async () => {
    let failures = 1;
    let opened = 0;
    const worker = new RelayWorker(relay, pump, ready, async () => {
      opened++;
      return {
        ...ticks,
        start: async () => {
          if (failures-- > 0) throw new Error('no connection');
          step('start ticks');
        },
      };
    });
    worker.start();
    await until(() => done.includes('start ticks'), { what: 'it ticks' });
    expect(opened).toBe(1);
    expect(done.filter((what) => what === 'listen')).toHaveLength(1);
    expect(log.messages('error')).toEqual([
      'the relay cannot start ticking, will try again in 1 s: no connection',
    ]);
    await worker.stop();
  });

  it('that is stopped while its ticks are being opened closes them, and never starts them', async () => {
    const opening = deferred<Ticks>();
    const asked = deferred();
    const worker = new RelayWorker(relay, pump, ready, () => {
      asked.resolve();
      return opening.promise;
    });
    worker.start();
    await asked.promise;
    const stopped = worker.stop();
    opening.resolve(ticks);
    await stopped;
    expect(done).toEqual(['open', 'wake', 'listen', 'stop relay', 'stop pump', 'stop ticks']);
  });

  it('stops once, however often it is told to, and says what does not stop cleanly', async () => {
    const worker = new RelayWorker(relay, pump, ready, async () => ({
      ...ticks,
      stop: async () => {
        step('stop ticks');
        throw new Error('no connection');
      },
    }));
    worker.start();
    await until(() => done.includes('start ticks'), { what: 'it ticks' });
    await Promise.all([worker.stop(), worker.stop()]);
    await worker.stop();
    expect(done.slice(-3)).toEqual(['stop relay', 'stop pump', 'stop ticks']);
    expect(log.messages('warn')).toEqual(['pg-boss did not stop cleanly: no connection']);
  });

  it('without listeners says that nothing is delivered', async () => {
    const worker = new RelayWorker(
      relay,
      pump,
      { ...ready, listenersAttached: () => Promise.reject(new Error('init failed')) },
      async () => ticks,
    );
    worker.start();
    await until(() => log.messages('error').length === 1, { what: 'it says so' });
    expect(log.messages('error')).toEqual([
      'listeners could not be attached, nothing is delivered: init failed',
    ]);
    await worker.stop();
  });

  it('told to stop while it waits for its store begins nothing any more', async () => {
    const storeReady = deferred();
    const worker = new RelayWorker(
      relay,
      pump,
      { ...ready, storeReady: () => storeReady.promise },
      async () => ticks,
      { start: () => step('start heartbeat'), stop: async () => step('stop heartbeat') },
    );
    worker.start();
    await until(() => done.includes('open'), { what: 'it is open' });
    const stopped = worker.stop();
    storeReady.resolve();
    await stopped;
    expect(done).toEqual(['open', 'stop relay', 'stop pump', 'stop heartbeat']);
  });
});
