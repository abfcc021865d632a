import type { OutboxStore } from '../store/outbox-store.js';

/** How long finished events are kept, in milliseconds; `false` keeps them for ever. */
export interface Retention {
  readonly completedMs: number | false;
  readonly failedMs: number | false;
}

export interface Pruned {
  readonly completed: number;
  readonly failed: number;
}

// Small enough to hold no lock and no snapshot for long.
const BATCH = 1_000;

/** Deletes finished events that are older than their retention, in batches. What can be retried is never touched. */
export class Pruner {
  constructor(
    private readonly store: OutboxStore,
    private readonly retention: Retention,
  ) {}

  async prune(): Promise<Pruned> {
    return {
      completed: await this.pruneStatus('COMPLETED', this.retention.completedMs),
      failed: await this.pruneStatus('FAILED', this.retention.failedMs),
    };
  }

  private async pruneStatus(
    status: 'COMPLETED' | 'FAILED',
    olderThanMs: number | false,
  ): Promise<number> {
    if (olderThanMs === false) return 0;
    let total = 0;
    for (let pruned = BATCH; pruned === BATCH; total += pruned) {
      pruned = await this.store.prune({ status, olderThanMs, limit: BATCH });
    }
    return total;
  }
}
