import { describe, expect, it, jest } from '@jest/globals';
import { ActivityCounter } from '../../src/relay/activity-counter.js';
import { Heartbeat } from '../../src/relay/heartbeat.js';
import { ActivityStore, type RelayReport } from '../../src/store/activity-store.js';
import { InMemoryOutboxStore } from '../../src/store/memory/in-memory-outbox-store.js';
import { RecordingLogger } from '../support/logger.js';
import { until } from '../support/until.js';

const HOUR = { sinceMs: 3_600_000, stepMs: 60_000 };

/** Forgets to answer, or does not take it at all. */
class FlakyStore extends ActivityStore {
  readonly real = new InMemoryOutboxStore().activity;
  readonly sent: RelayReport[] = [];
  fails: 'before' | 'after' | undefined;
  /** Waited for before each report is taken. */
  before: Promise<void> | undefined;

  async report(report: RelayReport): Promise<void> {
    this.sent.push(report);
    await this.before;
    if (this.fails === 'before') throw new Error('no connection');
    await this.real.report(report);
    if (this.fails === 'after') throw new Error('the answer was lost');
  }

  relays(): ReturnType<ActivityStore['relays']> {
    return this.real.relays();
  }

  activity(
    request: Parameters<ActivityStore['activity']>[0],
  ): ReturnType<ActivityStore['activity']> {
    return this.real.activity(request);
  }
}

function setUp() {
  const store = new FlakyStore();
  const counter = new ActivityCounter();
  const listeners = [{ name: 'Mail.send', event: 'a' }];
  const log = new RecordingLogger();
  const heartbeat = new Heartbeat(store, counter, () => listeners, log);
  const delivered = async (): Promise<number> =>
    (await store.activity(HOUR)).reduce((sum, step) => sum + step.delivered, 0);
  return { store, counter, heartbeat, delivered, log };
}

describe('a heartbeat', () => {
  it('reports at once, every 15 seconds, and a last time when the relay ends', async () => {
    jest.useFakeTimers();
    try {
      const { store, counter, heartbeat, delivered } = setUp();
      heartbeat.start();
      await jest.advanceTimersByTimeAsync(0);
      expect(store.sent).toHaveLength(1);
      counter.count('a', 'completed');
      await jest.advanceTimersByTimeAsync(14_999);
      expect(store.sent).toHaveLength(1);
      await jest.advanceTimersByTimeAsync(1);
      expect(store.sent).toHaveLength(2);
      counter.count('a', 'completed');
      await heartbeat.stop();
      await jest.advanceTimersByTimeAsync(60_000);
      expect(store.sent.map(({ number, stopped }) => [number, stopped])).toEqual([
        [1, false],
        [2, false],
        [3, true],
      ]);
      expect(await delivered()).toBe(2);
      expect(await store.relays()).toMatchObject([
        { version: expect.stringMatching(/^\d+\.\d+\.\d+/), stoppedAt: expect.any(Date) },
      ]);
    } finally {
      jest.useRealTimers();
    }
  });

  it.each(['before', 'after'] as const)(
    'whose report failed %s it arrived sends it again, and every event is counted once',
    async (fails) => {
      const { store, counter, heartbeat, delivered } = setUp();
      store.fails = fails;
      counter.count('a', 'completed');
      heartbeat.start();
      await until(() => store.sent.length === 1, { what: 'it has reported' });
      counter.count('a', 'completed');
      store.fails = undefined;
      await heartbeat.stop();
      expect(await delivered()).toBe(2);
      expect(store.sent.map(({ number }) => number)).toEqual([1, 1, 2]);
    },
  );

  it('does not hold up the end of a process whose database does not answer', async () => {
    const { store, heartbeat } = setUp();
    heartbeat.start();
    await until(() => store.sent.length === 1, { what: 'it has reported' });
    store.report = () => new Promise(() => {});
    jest.useFakeTimers();
    try {
      const stopped = heartbeat.stop();
      await jest.advanceTimersByTimeAsync(2_000);
      await expect(stopped).resolves.toBeUndefined();
    } finally {
      jest.useRealTimers();
    }
  });

  it('that still waits for an answer when the relay ends has its last word last', async () => {
    const { store, counter, heartbeat, delivered } = setUp();
    heartbeat.start();
    await until(() => store.sent.length === 1, { what: 'it has reported' });
    jest.useFakeTimers();
    try {
      let answer = (): void => {};
      store.before = new Promise((resolve) => (answer = resolve));
      counter.count('a', 'completed');
      const late = heartbeat.stop();
      heartbeat.start();
      answer();
      await late;
      await jest.advanceTimersByTimeAsync(60_000);
    } finally {
      jest.useRealTimers();
    }
    expect(store.sent.map(({ stopped }) => stopped)).toEqual([false, true]);
    expect(await delivered()).toBe(1);
  });

  it('whose reports keep failing is said once', async () => {
    jest.useFakeTimers();
    try {
      const { store, heartbeat, log } = setUp();
      store.fails = 'before';
      heartbeat.start();
      await jest.advanceTimersByTimeAsync(10 * 15_000);
      expect(log.messages('warn')).toEqual([
        'the relay could not report, the next report will: no connection',
      ]);
      await heartbeat.stop();
    } finally {
      jest.useRealTimers();
    }
  });

  it('that never started has nothing to say', async () => {
    const { store, heartbeat } = setUp();
    await heartbeat.stop();
    expect(store.sent).toEqual([]);
  });
});
