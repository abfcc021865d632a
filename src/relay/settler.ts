import { setTimeout as sleep } from 'node:timers/promises';
import { errorText } from '../event/error-text.js';
import type { OutboxStore, Settlement } from '../store/outbox-store.js';
import type { Log } from './log.js';

const FIRST_WAIT_MS = 50;

/**
 * Writes outcomes down. While one statement is under way, what else finishes is collected for the next: under load
 * batches form by themselves, and a lone event is settled at once.
 */
export class Settler {
  private queue: { settlement: Settlement; done: (settled: boolean) => void }[] = [];
  private flushing = false;

  constructor(
    private readonly store: OutboxStore,
    private readonly log: Log,
    /** How long to keep trying when the store fails: after that the lease is over anyway. */
    private readonly giveUpAfterMs: number,
  ) {}

  /** @returns whether the event was still ours. Never rejects: what cannot be settled is found by the reaper. */
  async settle(settlement: Settlement): Promise<boolean> {
    const settled = new Promise<boolean>((done) => {
      this.queue.push({ settlement, done });
    });
    if (!this.flushing) void this.flush();
    return settled;
  }

  private async flush(): Promise<void> {
    this.flushing = true;
    // One turn for others that finish together with the first.
    await Promise.resolve();
    while (this.queue.length > 0) {
      const batch = this.queue;
      this.queue = [];
      const held = await this.write(batch.map(({ settlement }) => settlement));
      for (const { settlement, done } of batch) done(held.has(settlement.id));
    }
    this.flushing = false;
  }

  /**
   * Repeats what failed: the statement is safe to repeat, since a lease ends only once. An answer lost on the way
   * makes the second try find nothing held; the first has done the work.
   */
  private async write(settlements: Settlement[]): Promise<Set<string>> {
    const deadline = performance.now() + this.giveUpAfterMs;
    for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(waitMs * 2, 2_000)) {
      try {
        return new Set(await this.store.settle(settlements));
      } catch (error) {
        if (performance.now() + waitMs > deadline) {
          this.log.error(
            `could not settle ${settlements.length} delivered event(s), the reaper will find them and they may be delivered again: ${errorText(error)}`,
          );
          return new Set();
        }
        await sleep(waitMs);
      }
    }
  }
}
