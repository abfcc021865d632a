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

// A minute of them.
const FAILURES_TO_WARN = 4;

// The last report of a process that ends is worth a moment, and no more.
const LAST_REPORT_MS = 2_000;

/** Reports every 15 seconds that this process relays, to whom it delivers and what it has settled. */
export class Heartbeat {
  private readonly relayId = randomUUID();
  private readonly name = `${hostname()}:${process.pid}`;
  private timer: NodeJS.Timeout | undefined;
  private ended = false;
  private failures = 0;
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
    if (this.timer !== undefined || this.ended) return;
    this.timer = setInterval(() => void this.beat(), TICK_MS).unref();
    void this.beat();
  }

  /** Says that this process ends, once it has settled what it had. Nothing is reported after that. */
  async stop(): Promise<void> {
    if (this.ended) return;
    this.ended = true;
    if (this.timer === undefined) return;
    clearInterval(this.timer);
    await within(LAST_REPORT_MS, this.beat());
  }

  /** Never rejects. One report after the other: one that comes late must not take back the last word. */
  private beat(): Promise<void> {
    this.reporting = this.reporting.then(() => this.report());
    return this.reporting;
  }

  private async report(): Promise<void> {
    try {
      if (this.unsent !== undefined) await this.store.report(this.unsent);
      if (this.unsent?.stopped === true) return;
      this.unsent = this.next(this.ended);
      await this.store.report(this.unsent);
      if (!this.unsent.stopped) this.unsent = undefined;
      this.failures = 0;
    } catch (error) {
      this.failed(error);
    }
  }

  private failed(error: unknown): void {
    this.failures++;
    const said = `the relay could not report, the next report will: ${errorText(error)}`;
    // The pump says it, with restraint, when the database cannot be reached. A report that fails by itself is said once.
    if (this.failures === FAILURES_TO_WARN) this.log.warn(said);
    else this.log.debug(said);
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
