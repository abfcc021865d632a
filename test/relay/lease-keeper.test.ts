import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { LeaseKeeper, type Held } from '../../src/relay/lease-keeper.js';
import type { Lease } from '../../src/store/outbox-store.js';
import { InMemoryOutboxStore } from '../../src/testing.js';
import { RecordingLogger } from '../support/logger.js';
import { deferred } from '../support/until.js';

const LEASE_MS = 60_000;

/** Answers renewals as it is told, and remembers what was asked. */
class RenewingStore extends InMemoryOutboxStore {
  readonly asked: { atMs: number; ids: string[] }[] = [];
  answer = async (leases: readonly Lease[]): Promise<string[]> => leases.map(({ id }) => id);

  override async renew(leases: readonly Lease[]): Promise<string[]> {
    this.asked.push({ atMs: performance.now(), ids: leases.map(({ id }) => id) });
    return this.answer(leases);
  }
}

class TestHeld implements Held {
  readonly lease = { id: randomUUID(), leaseToken: randomUUID() };
  heldSince = performance.now();
  lost = 0;
  readonly onLost = (): void => void this.lost++;
}

describe('a lease keeper', () => {
  let store: RenewingStore;
  let log: RecordingLogger;
  let keeper: LeaseKeeper<TestHeld>;

  beforeEach(() => {
    jest.useFakeTimers({ now: 0 });
    store = new RenewingStore();
    log = new RecordingLogger();
    keeper = new LeaseKeeper(store, log, LEASE_MS);
  });

  afterEach(() => {
    jest.useRealTimers();
  });

  it('renews all that are held in one statement, again and again, long before they are over', async () => {
    const held = Array.from({ length: 50 }, () => new TestHeld());
    for (const one of held) keeper.hold(one);
    await jest.advanceTimersByTimeAsync(5 * LEASE_MS);
    expect(store.asked.length).toBeGreaterThanOrEqual(10);
    for (const { ids } of store.asked) expect(ids).toHaveLength(50);
    const times = [0, ...store.asked.map(({ atMs }) => atMs)];
    const gaps = times.slice(1).map((time, index) => time - (times[index] ?? 0));
    expect(Math.max(...gaps)).toBeLessThanOrEqual(LEASE_MS / 2);
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(LEASE_MS / 3);
  });

  it('leaves young ones alone: most deliveries are over before', async () => {
    const old = new TestHeld();
    keeper.hold(old);
    await jest.advanceTimersByTimeAsync(LEASE_MS / 3 - 1);
    const young = new TestHeld();
    keeper.hold(young);
    await jest.advanceTimersByTimeAsync(1);
    expect(store.asked.map(({ ids }) => ids)).toEqual([[old.lease.id]]);
    keeper.letGo(young);
    await jest.advanceTimersByTimeAsync(LEASE_MS);
    expect(store.asked.flatMap(({ ids }) => ids)).not.toContain(young.lease.id);
  });

  it('tries again several times before the lease is over, and says it once', async () => {
    store.answer = async () => {
      throw new Error('no connection');
    };
    keeper.hold(new TestHeld());
    await jest.advanceTimersByTimeAsync(LEASE_MS - 1);
    expect(store.asked.length).toBeGreaterThanOrEqual(3);
    await jest.advanceTimersByTimeAsync(10 * LEASE_MS);
    expect(log.messages('warn')).toEqual(['could not renew leases, will try again: no connection']);
  });

  it('tells whoever has lost his lease, and nobody else', async () => {
    const [lost, kept] = [new TestHeld(), new TestHeld()];
    store.answer = async () => [kept.lease.id];
    keeper.hold(lost);
    keeper.hold(kept);
    await jest.advanceTimersByTimeAsync(LEASE_MS / 2);
    expect([lost.lost, kept.lost]).toEqual([1, 0]);
  });

  it('does not tell anybody who let go while the statement was under way', async () => {
    const held = new TestHeld();
    const answer = deferred<string[]>();
    store.answer = () => answer.promise;
    keeper.hold(held);
    await jest.advanceTimersByTimeAsync(LEASE_MS / 2);
    keeper.letGo(held);
    answer.resolve([]);
    await jest.advanceTimersByTimeAsync(0);
    expect(held.lost).toBe(0);
  });

  it('sends no second statement while one is under way', async () => {
    store.answer = () => new Promise(() => {});
    keeper.hold(new TestHeld());
    await jest.advanceTimersByTimeAsync(10 * LEASE_MS);
    expect(store.asked).toHaveLength(1);
  });

  it('looks no more when nothing is held', async () => {
    const held = new TestHeld();
    keeper.hold(held);
    keeper.letGo(held);
    expect(jest.getTimerCount()).toBe(0);
  });
});
