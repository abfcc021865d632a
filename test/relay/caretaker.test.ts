import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Caretaker } from '../../src/relay/caretaker.js';
import type { Pruner } from '../../src/relay/pruner.js';
import type { Pump } from '../../src/relay/pump.js';
import type { Relay } from '../../src/relay/relay.js';
import { RecordingLogger } from '../support/logger.js';

const HOUR_MS = 3_600_000;

describe('a caretaker', () => {
  const done: string[] = [];
  let expired: number[];
  let failing: 'reap' | 'prune' | undefined;
  let stopping: boolean;
  let log: RecordingLogger;
  let caretaker: Caretaker;

  beforeEach(() => {
    jest.useFakeTimers({ now: 0 });
    done.length = 0;
    expired = [];
    failing = undefined;
    stopping = false;
    log = new RecordingLogger();
    const say = (what: 'wake' | 'reap' | 'prune'): void => {
      done.push(what);
      if (failing === what) throw new Error(`cannot ${what}`);
    };
    const relay: Pick<Relay, 'reap' | 'isStopping'> = {
      get isStopping() {
        return stopping;
      },
      async reap() {
        say('reap');
        return expired.shift() ?? 0;
      },
    };
    const pump: Pick<Pump, 'wake'> = { wake: () => say('wake') };
    const pruner: Pick<Pruner, 'prune'> = {
      async prune() {
        say('prune');
        return { completed: 3, failed: 0, inbox: 0 };
      },
    };
    caretaker = new Caretaker(relay as Relay, pump as Pump, pruner as Pruner, log);
  });

  afterEach(() => {
    jest.useRealTimers();
  });

  it('wakes the relay first: what is due does not wait for the rest', async () => {
    await caretaker.tick();
    expect(done[0]).toBe('wake');
  });

  it('reaps until nothing has expired any more, and says how many it was', async () => {
    expired = [100, 100, 7];
    await caretaker.tick();
    expect(done.filter((what) => what === 'reap')).toHaveLength(4);
    expect(log.messages('warn')).toEqual([
      'reaped 207 event(s) whose process died or stalled: each counts as a failed attempt',
    ]);
  });

  it('prunes at the first tick and then once an hour', async () => {
    for (let tick = 0; tick < 241; tick++) {
      await caretaker.tick();
      jest.advanceTimersByTime(HOUR_MS / 240);
    }
    expect(done.filter((what) => what === 'prune')).toHaveLength(2);
  });

  it.each(['reap', 'prune'] as const)(
    'never throws, whatever goes wrong: %s, which says so',
    async (what) => {
      failing = what;
      await expect(caretaker.tick()).resolves.toBeUndefined();
      expect(log.messages().join()).toContain(`cannot ${what}`);
      failing = undefined;
      await caretaker.tick();
      expect(done.filter((step) => step === 'reap')).toHaveLength(2);
    },
  );

  it('begins nothing more once the relay is stopping', async () => {
    stopping = true;
    await caretaker.tick();
    expect(done).toEqual(['wake']);
  });

  it('says it when ticks do not finish for a minute, and every minute that they do not', async () => {
    failing = 'reap';
    for (let tick = 1; tick <= 9; tick++) await caretaker.tick();
    expect(log.messages('warn')).toEqual([
      'the last 4 ticks did not finish, so what dead processes left is not taken up and old rows stay: cannot reap',
      'the last 8 ticks did not finish, so what dead processes left is not taken up and old rows stay: cannot reap',
    ]);
    failing = undefined;
    await caretaker.tick();
    failing = 'reap';
    for (let tick = 1; tick <= 3; tick++) await caretaker.tick();
    expect(log.messages('warn')).toHaveLength(2);
  });
});
