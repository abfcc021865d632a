import { beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type { Delivery, DeliveryOutcome, RunningDelivery } from '../../src/delivery/delivery.js';
import { DEFAULT_RETRY_POLICY } from '../../src/event/retry-policy.js';
import { Relay } from '../../src/relay/relay.js';
import { Reporter } from '../../src/relay/reporter.js';
import type { RelaySettings } from '../../src/relay/relay-settings.js';
import type { ClaimedEvent, Settlement } from '../../src/store/outbox-store.js';
import { InMemoryOutboxStore } from '../../src/testing.js';
import { RecordingLogger } from '../support/logger.js';
import { deferred, until, type Deferred } from '../support/until.js';

const MINUTE_MS = 60_000;

/** Counts what is asked of it, and fails when it is told to. */
class CountingStore extends InMemoryOutboxStore {
  calls = 0;
  failing = false;

  override settleAndClaim(
    ...args: Parameters<InMemoryOutboxStore['settleAndClaim']>
  ): ReturnType<InMemoryOutboxStore['settleAndClaim']> {
    this.calls++;
    if (this.failing) return Promise.reject(new Error('no connection'));
    return super.settleAndClaim(...args);
  }

  override async claimOthers(
    ...args: Parameters<InMemoryOutboxStore['claimOthers']>
  ): Promise<ClaimedEvent[]> {
    this.calls++;
    return super.claimOthers(...args);
  }
}

/** Listeners in the shape of a function from an event to what they answer. */
class Listeners {
  readonly called: string[] = [];
  readonly running = new Map<string, Deferred<DeliveryOutcome>>();
  answer: (event: ClaimedEvent) => DeliveryOutcome | undefined = () => SUCCESS;

  start(event: ClaimedEvent): RunningDelivery {
    this.called.push(event.id);
    const outcome = deferred<DeliveryOutcome>();
    const answer = this.answer(event);
    // `undefined`: it takes its time.
    if (answer === undefined) this.running.set(event.id, outcome);
    else outcome.resolve(answer);
    return {
      outcome: outcome.promise,
      cancel: () => outcome.resolve({ kind: 'cancelled', succeeded: [] }),
    };
  }
}

const SUCCESS: DeliveryOutcome = { kind: 'answered', succeeded: ['L.l'], failures: [] };
const FAILURE: DeliveryOutcome = {
  kind: 'answered',
  succeeded: [],
  failures: [{ listener: 'L.l', error: new Error('no') }],
};

describe('a relay', () => {
  let store: CountingStore;
  let listeners: Listeners;
  let log: RecordingLogger;
  let relay: Relay;

  function newRelay(settings: Partial<RelaySettings> = {}): Relay {
    const reporter = new Reporter(log, () => {});
    const opened = new Relay(
      store,
      listeners as unknown as Delivery,
      reporter,
      {
        retry: DEFAULT_RETRY_POLICY,
        batchSize: 10,
        concurrency: 5,
        leaseMs: MINUTE_MS,
        listenerTimeoutMs: 30_000,
        shutdownTimeoutMs: 1_000,
        unheardGraceMs: MINUTE_MS,
        ...settings,
      },
      log,
    );
    opened.open();
    return opened;
  }

  beforeEach(() => {
    store = new CountingStore();
    listeners = new Listeners();
    log = new RecordingLogger();
    relay = newRelay();
  });

  async function enqueue(count: number, eventType = 'x'): Promise<string[]> {
    const ids = Array.from({ length: count }, () => randomUUID());
    await store.enqueue(ids.map((id) => ({ id, eventType, payload: {}, metadata: {} })));
    return ids;
  }

  const statuses = (): string[] => store.all().map(({ status }) => status);

  it('is not held up by 25 events that always fail: in one go each is tried once, and the five behind them are done', async () => {
    const failing = new Set(await enqueue(25, 'poison'));
    const good = await enqueue(5);
    listeners.answer = ({ id }) => (failing.has(id) ? FAILURE : SUCCESS);
    const conveyor = relay.openConveyor();
    conveyor.feed();
    await conveyor.idle();

    expect(listeners.called.toSorted()).toEqual([...failing, ...good].toSorted());
    expect(statuses().filter((status) => status === 'COMPLETED')).toHaveLength(5);
    for (const { id, status, retryCount } of store.all()) {
      if (failing.has(id))
        expect({ status, retryCount }).toEqual({ status: 'PENDING', retryCount: 1 });
    }
    // Three claims of ten, an empty one, and what settles the last.
    expect(store.calls).toBeLessThanOrEqual(12);
  });

  it('does not turn in circles over events that are due again at once: each is tried as often as it may', async () => {
    relay = newRelay({ retry: { ...DEFAULT_RETRY_POLICY, backoff: () => 0 } });
    await enqueue(25);
    listeners.answer = () => FAILURE;
    const conveyor = relay.openConveyor();
    relay.onDueIn = () => conveyor.feed();
    conveyor.feed();
    await until(() => statuses().every((status) => status === 'FAILED'), { what: 'all are dead' });
    await conveyor.idle();
    expect(listeners.called).toHaveLength(125);
    expect(store.calls).toBeLessThanOrEqual(75);
  });

  it('with nothing to do asks once', async () => {
    const conveyor = relay.openConveyor();
    conveyor.feed();
    await conveyor.idle();
    expect(store.calls).toBe(1);
  });

  it('keeps what it could not settle, and settles it when the store is there again: nothing is delivered twice', async () => {
    await enqueue(3);
    const conveyor = relay.openConveyor();
    listeners.answer = () => undefined;
    conveyor.feed();
    await until(() => listeners.running.size === 3, { what: 'three are at work' });
    store.failing = true;
    for (const listener of listeners.running.values()) listener.resolve(SUCCESS);
    await until(() => log.messages('error').length === 1, { what: 'it says that it cannot' });
    expect(statuses()).toEqual(['PROCESSING', 'PROCESSING', 'PROCESSING']);
    store.failing = false;
    await conveyor.idle();
    expect(statuses()).toEqual(['COMPLETED', 'COMPLETED', 'COMPLETED']);
    expect(listeners.called).toHaveLength(3);
    expect(log.messages('log')).toEqual(["the outbox's store answers again"]);
  });

  describe('reaping', () => {
    /** Events whose relay has died over them. */
    async function expired(count: number): Promise<void> {
      await enqueue(count);
      await store.claim({ limit: count, leaseMs: MINUTE_MS });
      store.advance(2 * MINUTE_MS);
    }

    async function settlementsOfReap(): Promise<Settlement[]> {
      const settled: Settlement[] = [];
      const settle = store.settle.bind(store);
      store.settle = async (settlements) => {
        settled.push(...settlements);
        return settle(settlements);
      };
      await relay.reap();
      return settled;
    }

    it('counts the crash as a failed attempt, and waits the backoff', async () => {
      await expired(1);
      expect(await settlementsOfReap()).toMatchObject([
        { outcome: 'retry', retryCount: 1, delayMs: 2 * MINUTE_MS },
      ]);
      expect(listeners.called).toEqual([]);
    });

    it('brings back one after the other what went down together: the one that ends processes must not take the others along each time', async () => {
      await expired(10);
      const delays = (await settlementsOfReap()).map((settlement) =>
        'delayMs' in settlement ? settlement.delayMs : NaN,
      );
      expect(delays).toHaveLength(10);
      expect(delays[0]).toBe(2 * MINUTE_MS);
      const steps = delays.slice(1).map((delay, index) => delay - (delays[index] ?? 0));
      for (const step of steps) expect(step).toBeCloseTo((2 * MINUTE_MS) / 10);
    });

    it('sets aside what has crashed as often as it may', async () => {
      relay = newRelay({ retry: { ...DEFAULT_RETRY_POLICY, maxRetries: 1 } });
      await expired(2);
      expect(await relay.reap()).toBe(2);
      expect(statuses()).toEqual(['FAILED', 'FAILED']);
    });

    it('leaves alone what is held', async () => {
      await enqueue(1);
      await store.claim({ limit: 1, leaseMs: MINUTE_MS });
      expect(await relay.reap()).toBe(0);
      expect(statuses()).toEqual(['PROCESSING']);
    });
  });

  describe('that is stopped', () => {
    it('waits for what is at work and gives back what waits, no attempt spent', async () => {
      const ids = await enqueue(8);
      listeners.answer = () => undefined;
      const conveyor = relay.openConveyor();
      conveyor.feed();
      await until(() => listeners.running.size === 5, { what: 'five are at work' });
      const stopped = relay.stop();
      for (const listener of listeners.running.values()) listener.resolve(SUCCESS);
      await stopped;
      expect(listeners.called).toEqual(ids.slice(0, 5));
      expect(statuses()).toEqual([...Array(5).fill('COMPLETED'), ...Array(3).fill('PENDING')]);
      expect(store.all().map(({ retryCount }) => retryCount)).toEqual(Array(8).fill(0));
    });

    it('gives back what does not end in time', async () => {
      relay = newRelay({ shutdownTimeoutMs: 20 });
      await enqueue(1);
      listeners.answer = () => undefined;
      const conveyor = relay.openConveyor();
      conveyor.feed();
      await until(() => listeners.running.size === 1, { what: 'it is at work' });
      await relay.stop();
      expect(store.all()).toMatchObject([{ status: 'PENDING', retryCount: 0, lastError: null }]);
    });

    it('ends though the store is gone, and so does a pass by hand', async () => {
      relay = newRelay({ shutdownTimeoutMs: 20 });
      await enqueue(1);
      listeners.answer = () => undefined;
      const pass = relay.pass(10);
      await until(() => listeners.running.size === 1, { what: 'it is at work' });
      store.failing = true;
      await relay.stop();
      expect(await pass).toBe(1);
      expect(statuses()).toEqual(['PROCESSING']);
    });

    it('claims nothing any more, by whatever way', async () => {
      await enqueue(1);
      await relay.stop();
      expect(await relay.pass(10)).toBe(0);
      expect(await relay.claimOthers([])).toEqual([]);
      expect(statuses()).toEqual(['PENDING']);
    });
  });
});
