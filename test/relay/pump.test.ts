import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Conveyor } from '../../src/relay/conveyor.js';
import { Pump } from '../../src/relay/pump.js';
import type { Relay } from '../../src/relay/relay.js';
import type { WakeChannel } from '../../src/relay/wake-channel.js';

const TICK_MS = 15_000;

/** Counts who is woken. */
class TestRelay {
  isOpen = true;
  isStopping = false;
  onDueIn: (delayMs: number) => void = () => {};
  onBacklog: () => void = () => {};
  conveyors = 0;
  fedAt: number[] = [];
  onFeed: () => void = () => {};

  openConveyor(): Pick<Conveyor, 'feed'> {
    this.conveyors++;
    return {
      feed: () => {
        this.fedAt.push(performance.now());
        this.onFeed();
      },
    };
  }
}

class TestChannel implements WakeChannel {
  announced = 0;
  wake: () => void = () => {};

  announce(): void {
    this.announced++;
  }

  listen(onWake: () => void): void {
    this.wake = onWake;
  }

  async close(): Promise<void> {}
}

describe('a pump', () => {
  let relay: TestRelay;
  let channel: TestChannel;

  const newPump = ({ relaying = true } = {}): Pump =>
    new Pump(relay as unknown as Relay, relaying, channel);

  beforeEach(() => {
    jest.useFakeTimers({ now: 0 });
    relay = new TestRelay();
    channel = new TestChannel();
  });

  afterEach(() => {
    jest.useRealTimers();
  });

  it('works with one conveyor, however often it is woken', () => {
    const pump = newPump();
    for (let time = 0; time < 100; time++) pump.wake();
    expect(relay.conveyors).toBe(1);
    expect(relay.fedAt).toHaveLength(100);
  });

  it('does nothing before the listeners are attached, nor once the relay is stopping', () => {
    const pump = newPump();
    relay.isOpen = false;
    pump.wake();
    relay.isStopping = true;
    pump.wakeIn(10);
    pump.wakeAfterCommit();
    jest.advanceTimersByTime(TICK_MS);
    expect(relay.conveyors).toBe(0);
  });

  it('wakes at a moment when something falls due, never before it', () => {
    const pump = newPump();
    pump.wakeIn(333);
    jest.advanceTimersByTime(332);
    expect(relay.fedAt).toEqual([]);
    jest.advanceTimersByTime(TICK_MS);
    expect(relay.fedAt).toHaveLength(1);
    expect(relay.fedAt[0]).toBeGreaterThanOrEqual(333);
    expect(relay.fedAt[0]).toBeLessThan(333 + 25);
  });

  it('makes one wake of thousands that fall due within the same moment, and leaves what is due after the next tick to the tick', () => {
    const pump = newPump();
    for (let time = 0; time < 5_000; time++) pump.wakeIn(1_000 + (time % 10));
    pump.wakeIn(TICK_MS + 1);
    expect(jest.getTimerCount()).toBeLessThanOrEqual(2);
    jest.advanceTimersByTime(2 * TICK_MS);
    expect(relay.fedAt.length).toBeLessThanOrEqual(2);
  });

  it('is told by the relay when a retry falls due', () => {
    newPump();
    relay.onDueIn(100);
    jest.advanceTimersByTime(200);
    expect(relay.fedAt).toHaveLength(1);
  });

  it('looks again and again after an enqueue in a transaction, ever more rarely, and often again after the next', () => {
    const pump = newPump();
    pump.wakeAfterCommit();
    jest.advanceTimersByTime(TICK_MS);
    const looks = [...relay.fedAt];
    expect(looks[0]).toBeLessThanOrEqual(10);
    expect(looks.length).toBeLessThanOrEqual(10);
    const gaps = looks.slice(1).map((time, index) => time - (looks[index] ?? 0));
    expect(gaps).toEqual(gaps.toSorted((a, b) => a - b));
    expect(looks.at(-1)).toBeGreaterThan(3_000);

    for (let time = 0; time < 1_000; time++) pump.wakeAfterCommit();
    expect(jest.getTimerCount()).toBe(1);
    jest.advanceTimersByTime(10);
    expect(relay.fedAt).toHaveLength(looks.length + 1);
  });

  it('does not run what it sets going in the context of whoever woke it', () => {
    const request = new AsyncLocalStorage<string>();
    const seen: (string | undefined)[] = [];
    relay.onFeed = () => seen.push(request.getStore());
    const pump = newPump();
    request.run('a request', () => pump.wake());
    expect(seen).toEqual([undefined]);
  });

  it('wakes the relays of others where its own process does not relay', () => {
    const pump = newPump({ relaying: false });
    pump.wake();
    expect(channel.announced).toBe(1);
    expect(relay.conveyors).toBe(0);
  });

  it('is woken by others', () => {
    newPump().listen();
    channel.wake();
    expect(relay.fedAt).toHaveLength(1);
  });

  it('with a backlog calls the others, at most once a second', () => {
    newPump();
    for (let time = 0; time < 100; time++) {
      relay.onBacklog();
      jest.advanceTimersByTime(25);
    }
    expect(channel.announced).toBe(3);
  });

  it('that is stopped wakes nobody any more', () => {
    const pump = newPump();
    pump.wakeIn(100);
    pump.wakeAfterCommit();
    relay.isStopping = true;
    pump.stop();
    expect(jest.getTimerCount()).toBe(0);
  });
});
