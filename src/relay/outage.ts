import { errorText } from '../event/error-text.js';
import type { Log } from './log.js';

const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 5_000;

// A database that is down is said once, then once a minute.
const SAY_AGAIN_MS = 60_000;

/** How the relay behaves while the store cannot be reached: it waits longer each time, and complains with restraint. */
export class Outage {
  private nextWaitMs = FIRST_WAIT_MS;
  private lastSaid = -Infinity;

  constructor(private readonly log: Log) {}

  /** The store failed. @returns how long to wait before the next try */
  waitMs(error: unknown): number {
    const now = performance.now();
    if (now - this.lastSaid >= SAY_AGAIN_MS) {
      this.lastSaid = now;
      this.log.error(
        `the outbox's store fails, events wait and the relay keeps trying: ${errorText(error)}`,
      );
    }
    const waitMs = this.nextWaitMs;
    this.nextWaitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS);
    return waitMs;
  }

  /** The store answered. */
  over(): void {
    this.nextWaitMs = FIRST_WAIT_MS;
    if (this.lastSaid === -Infinity) return;
    this.lastSaid = -Infinity;
    this.log.log("the outbox's store answers again");
  }
}
