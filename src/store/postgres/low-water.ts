import type { ClaimedEvent } from '../outbox-store.js';

// Transactions that take longer than this to commit are found by the next claim that looks everywhere.
const OVERLAP_MS = 10_000;

const LOOK_EVERYWHERE_EVERY_MS = 1_000;

/**
 * A shortcut past what has been claimed already. While some session holds an old snapshot (a forgotten transaction, a
 * dump, a replica), the index entries of claimed events cannot be cleared away, and each claim would walk over all of
 * them: after 200,000 events it takes seven times as long.
 *
 * Never the truth: events that commit late or are given back lie below it, so once a second a claim looks everywhere.
 */
export class LowWater {
  private notBeforeMs: number | null = null;
  private lookedEverywhereAt = -Infinity;

  /** Where the next claim may start, in milliseconds since the epoch; `null` means everywhere. */
  next(): number | null {
    const now = performance.now();
    if (now - this.lookedEverywhereAt < LOOK_EVERYWHERE_EVERY_MS) return this.notBeforeMs;
    this.lookedEverywhereAt = now;
    return null;
  }

  /** Learns from a claim, which took the oldest that were due. */
  claimed(events: readonly ClaimedEvent[]): void {
    const [oldest] = events;
    if (oldest !== undefined) this.notBeforeMs = oldest.scheduledAt.getTime() - OVERLAP_MS;
  }
}
