import type { OutboxStore } from '../store/outbox-store.js';

/** How long finished events and inbox rows are kept, in milliseconds; `false` keeps them for ever. */
export interface Retention {
  readonly completedMs: number | false;
  readonly failedMs: number | false;
  readonly inboxMs: number | false;
}

/** Deletes rows older than that. @returns how many, at most `limit` */
export type Prune = (olderThanMs: number, limit: number) => Promise<number>;

export interface Pruned {
  readonly completed: number;
  readonly failed: number;
  /** Rows of the inbox. */
  readonly inbox: number;
}

// Small enough to hold no lock and no snapshot for long.
const BATCH = 1_000;

/** Deletes what is finished and older than its retention, in batches. What can be retried is never touched. */
export class Pruner {
  constructor(
    private readonly store: OutboxStore,
    private readonly retention: Retention,
    private readonly pruneInbox: Prune = async () => 0,
  ) {}

  async prune(): Promise<Pruned> {
    const { completedMs, failedMs, inboxMs } = this.retention;
    return {
      completed: await inBatches(completedMs, this.pruneStatus('COMPLETED')),
      failed: await inBatches(failedMs, this.pruneStatus('FAILED')),
      // After the events: a row is kept as long as its event can still be delivered.
      inbox: await inBatches(inboxMs, this.pruneInbox),
    };
  }

  private pruneStatus(status: 'COMPLETED' | 'FAILED'): Prune {
    return (olderThanMs, limit) => this.store.prune({ status, olderThanMs, limit });
  }
}

async function inBatches(olderThanMs: number | false, prune: Prune): Promise<number> {
  if (olderThanMs === false) return 0;
  let total = 0;
  for (let pruned = BATCH; pruned === BATCH; total += pruned) {
    pruned = await prune(olderThanMs, BATCH);
  }
  return total;
}
