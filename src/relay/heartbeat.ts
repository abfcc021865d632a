import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { errorText } from '../event/error-text.js';
import type { ActivityStore, KnownListener, RelayReport } from '../store/activity-store.js';
import type { ActivityCounter } from './activity-counter.js';
import type { Log } from './log.js';
import { packageVersion } from './package-version.js';
import { TICK_MS } from './ticks.js';
import { within } from './within.js';

/** Longer than this without a report, and a relay counts as gone: three reports were missed. */
export const ALIVE_WITHIN_MS = 4 * TICK_MS;

// The last report of a process that ends is worth a moment, and no more.
const LAST_REPORT_MS = 2_000;

/** Reports every 15 seconds that this process relays, to whom it delivers and what it has settled. */
export class Heartbeat {
  private readonly relayId = randomUUID();
  private readonly name = `${hostname()}:${process.pid}`;
  private timer: NodeJS.Timeout | undefined;
  private number = 0;
  /** Made and not known to have arrived: sent again as it is, so that nothing is counted twice. */
  private unsent: RelayReport | undefined;
  private reporting: Promise<void> = Promise.resolve();

  constructor(
    private readonly store: ActivityStore,
    private readonly counter: ActivityCounter,
    private readonly listeners: () => readonly KnownListener[],
    private readonly log: Log,
  ) {}

  start(): void {
    if (this.timer !== undefined) return;
    this.timer = setInterval(() => this.beat(), TICK_MS).unref();
    this.beat();
  }

  /** Says that this process ends, once it has settled what it had. */
  async stop(): Promise<void> {
    if (this.timer === undefined) return;
    clearInterval(this.timer);
    this.timer = undefined;
    await within(LAST_REPORT_MS, this.report(true));
  }

  /** Never rejects. One report after the other. */
  private beat(): void {
    this.reporting = this.reporting.then(() => this.report(false));
  }

  private async report(stopped: boolean): Promise<void> {
    try {
      if (this.unsent !== undefined) await this.store.report(this.unsent);
      this.unsent = this.next(stopped);
      await this.store.report(this.unsent);
      this.unsent = undefined;
    } catch (error) {
      // The pump says it, with restraint, when the database cannot be reached.
      this.log.debug(`the relay could not report, the next report will: ${errorText(error)}`);
    }
  }

  private next(stopped: boolean): RelayReport {
    this.number++;
    return {
      relayId: this.relayId,
      name: this.name,
      version: packageVersion(),
      listeners: this.listeners(),
      number: this.number,
      stopped,
      activity: this.counter.take(),
    };
  }
}
