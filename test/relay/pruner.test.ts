import { describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { Pruner } from '../../src/relay/pruner.js';
import type { PruneRequest } from '../../src/store/outbox-store.js';
import { InMemoryOutboxStore } from '../../src/testing.js';

const DAY_MS = 86_400_000;
const RETENTION = { completedMs: 7 * DAY_MS, failedMs: 90 * DAY_MS, inboxMs: 30 * DAY_MS };

class CountingStore extends InMemoryOutboxStore {
  readonly prunes: PruneRequest[] = [];

  override async prune(request: PruneRequest): Promise<number> {
    this.prunes.push(request);
    return super.prune(request);
  }

  async add(count: number, outcome: 'pending' | 'processing' | 'completed' | 'failed') {
    const ids = Array.from({ length: count }, () => randomUUID());
    await this.enqueue(ids.map((id) => ({ id, eventType: 'x', payload: {}, metadata: {} })));
    if (outcome === 'pending') return;
    const claimed = await this.claim({ limit: count, leaseMs: 365 * DAY_MS });
    if (outcome === 'processing') return;
    await this.settle(
      claimed.map(({ id, leaseToken }) => ({
        id,
        leaseToken,
        outcome,
        retryCount: 5,
        lastError: 'x',
        acknowledgedBy: [],
      })),
    );
  }

  statuses(): Record<string, number> {
    const byStatus = Map.groupBy(this.all(), ({ status }) => status);
    return Object.fromEntries([...byStatus].map(([status, rows]) => [status, rows.length]));
  }
}

describe('a pruner', () => {
  it('deletes in batches of a thousand, until there is nothing left to delete', async () => {
    const store = new CountingStore();
    await store.add(2_500, 'completed');
    store.advance(8 * DAY_MS);
    const pruner = new Pruner(store, RETENTION);
    expect(await pruner.prune()).toEqual({ completed: 2_500, failed: 0, inbox: 0 });
    expect(store.prunes.map(({ status, limit }) => ({ status, limit }))).toEqual([
      { status: 'COMPLETED', limit: 1_000 },
      { status: 'COMPLETED', limit: 1_000 },
      { status: 'COMPLETED', limit: 1_000 },
      { status: 'FAILED', limit: 1_000 },
    ]);
    expect(store.all()).toEqual([]);
  });

  it('deletes nothing that is young, and nothing that can still be retried, however old', async () => {
    const store = new CountingStore();
    await store.add(1, 'processing');
    await store.add(2, 'completed');
    await store.add(3, 'failed');
    store.advance(8 * DAY_MS);
    await store.add(4, 'completed');
    await store.add(5, 'pending');
    const pruner = new Pruner(store, RETENTION);
    expect(await pruner.prune()).toEqual({ completed: 2, failed: 0, inbox: 0 });
    expect(store.statuses()).toEqual({ PROCESSING: 1, FAILED: 3, COMPLETED: 4, PENDING: 5 });
    store.advance(90 * DAY_MS);
    expect(await pruner.prune()).toEqual({ completed: 4, failed: 3, inbox: 0 });
    expect(store.statuses()).toEqual({ PROCESSING: 1, PENDING: 5 });
  });

  it('prunes the inbox after the events, in batches too, by a retention of its own', async () => {
    const store = new CountingStore();
    const asked: [olderThanMs: number, limit: number][] = [];
    let rows = 1_500;
    const pruner = new Pruner(store, RETENTION, async (olderThanMs, limit) => {
      expect(store.prunes).toHaveLength(2);
      asked.push([olderThanMs, limit]);
      const pruned = Math.min(rows, limit);
      rows -= pruned;
      return pruned;
    });
    expect(await pruner.prune()).toEqual({ completed: 0, failed: 0, inbox: 1_500 });
    expect(asked).toEqual([
      [30 * DAY_MS, 1_000],
      [30 * DAY_MS, 1_000],
    ]);
  });

  it('does not even ask for what is kept for ever', async () => {
    const store = new CountingStore();
    await store.add(1, 'completed');
    store.advance(10_000 * DAY_MS);
    const pruner = new Pruner(store, { completedMs: false, failedMs: false, inboxMs: false });
    expect(await pruner.prune()).toEqual({ completed: 0, failed: 0, inbox: 0 });
    expect(store.prunes).toEqual([]);
  });
});
