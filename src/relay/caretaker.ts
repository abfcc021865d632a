import { errorText } from '../event/error-text.js';
import type { Log } from './log.js';
import type { Pruner } from './pruner.js';
import type { Pump } from './pump.js';
import type { Relay } from './relay.js';

const PRUNE_EVERY_MS = 3_600_000;

// A minute of ticks. A shorter outage is the pump's to tell, and the tick mends itself.
const FAILURES_TO_WARN = 4;

/** What a tick does: takes care of what dead relays left, of old rows, and of whatever is due. Never throws. */
export class Caretaker {
  private lastPrune = -Infinity;
  private failures = 0;

  constructor(
    private readonly relay: Relay,
    private readonly pump: Pump,
    private readonly pruner: Pruner,
    private readonly log: Log,
  ) {}

  readonly tick = async (): Promise<void> => {
    this.pump.wake();
    try {
      await this.reapAll();
      await this.pruneHourly();
      this.failures = 0;
    } catch (error) {
      this.failed(error);
    }
  };

  private failed(error: unknown): void {
    this.failures++;
    if (this.failures % FAILURES_TO_WARN !== 0) {
      this.log.debug(`the tick did not finish, the next one will: ${errorText(error)}`);
      return;
    }
    this.log.warn(
      `the last ${this.failures} ticks did not finish, so what dead processes left is not taken up and old rows stay: ` +
        errorText(error),
    );
  }

  private async reapAll(): Promise<void> {
    let total = 0;
    for (let reaped = 1; reaped > 0 && !this.relay.isStopping; total += reaped)
      reaped = await this.relay.reap();
    if (total > 0)
      this.log.warn(
        `reaped ${total} event(s) whose process died or stalled: each counts as a failed attempt`,
      );
  }

  private async pruneHourly(): Promise<void> {
    const now = performance.now();
    if (this.relay.isStopping || now - this.lastPrune < PRUNE_EVERY_MS) return;
    this.lastPrune = now;
    const { completed, failed, inbox } = await this.pruner.prune();
    if (completed + failed + inbox > 0)
      this.log.log(
        `pruned ${completed} completed and ${failed} failed event(s) and ${inbox} inbox row(s) past their retention`,
      );
  }
}
