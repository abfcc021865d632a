import { AsyncLocalStorage } from 'node:async_hooks';
import { errorText } from '../event/error-text.js';
import type { Log } from './log.js';
import type { Relay } from './relay.js';
import type { RelaySettings } from './relay-settings.js';
import { TICK_MS } from './ticks.js';

// After an enqueue inside a transaction the commit cannot be seen from here: look again for a while, ever more
// rarely. In milliseconds from the wake.
const LOOK_AGAIN_MS = [10, 25, 50, 100, 200, 400, 800, 1_600, 3_200];

const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 15_000;

// A database that is down is said once, then once a minute.
const SAY_AGAIN_MS = 60_000;

/**
 * Keeps the relay's places filled for as long as anything is due, and goes to sleep when nothing is. Woken by an
 * enqueue in this process, by the tick, or by a moment at which something falls due.
 */
export class Pump {
  private draining: Promise<void> | undefined;
  /** Something may be due that has not been claimed. */
  private awake = false;
  /** Claimed, and waiting for a place. */
  private readonly waiting: (() => Promise<void>)[] = [];
  private readonly running = new Set<Promise<void>>();
  private readonly timers = new Set<NodeJS.Timeout>();
  private retryMs = FIRST_RETRY_MS;
  private lastComplaint = -Infinity;
  // A wake comes from somewhere, e.g. an HTTP request; what it sets going must not run in that request's async context.
  private readonly detached = AsyncLocalStorage.snapshot();

  constructor(
    private readonly relay: Relay,
    private readonly settings: Pick<RelaySettings, 'batchSize' | 'concurrency'>,
    private readonly log: Log,
    /** `false` in a process that does not relay: nothing wakes it. */
    private readonly enabled: boolean,
  ) {
    relay.onDueIn = (delayMs) => this.wakeIn(delayMs);
  }

  /** Something may be due: look at once. */
  wake(): void {
    if (!this.enabled || !this.relay.isOpen) return;
    this.awake = true;
    this.draining ??= this.detached(() => this.drain());
  }

  /** Something will be due in so many milliseconds. What is due after the next tick is the tick's. */
  wakeIn(delayMs: number): void {
    if (!this.enabled || this.relay.isStopping || delayMs > TICK_MS) return;
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      this.wake();
    }, delayMs);
    timer.unref();
    this.timers.add(timer);
  }

  /** Something will be due as soon as a transaction commits, which cannot be seen from here. */
  wakeAfterCommit(): void {
    for (const delayMs of LOOK_AGAIN_MS) this.wakeIn(delayMs);
  }

  /** Resolves when nothing is due any more and nothing is under way, or the database fails. */
  async untilDrained(): Promise<void> {
    this.wake();
    while (this.draining !== undefined || this.running.size > 0) {
      await (this.draining ?? Promise.all(this.running));
    }
  }

  /** To be called once the relay is stopping: gives back what waits for a place. */
  stop(): void {
    for (const timer of this.timers) clearTimeout(timer);
    this.timers.clear();
    for (const handle of this.waiting.splice(0)) this.run(handle);
  }

  /** A place that becomes free is filled at once, so that a slow listener holds nobody back but itself. */
  private async drain(): Promise<void> {
    const { concurrency } = this.settings;
    while (this.waiting.length > 0 || (this.awake && this.relay.isOpen)) {
      if (this.running.size >= concurrency) await Promise.race(this.running);
      else if (this.waiting.length === 0) await this.refill();
      else
        for (const handle of this.waiting.splice(0, concurrency - this.running.size))
          this.run(handle);
    }
    this.draining = undefined;
  }

  private async refill(): Promise<void> {
    this.awake = false;
    try {
      const claimed = await this.relay.claim(this.settings.batchSize);
      this.waiting.push(...claimed);
      if (claimed.length === this.settings.batchSize) this.awake = true;
      this.recovered();
    } catch (error) {
      this.complain(error);
      this.wakeIn(this.retryMs);
      this.retryMs = Math.min(this.retryMs * 2, LONGEST_RETRY_MS);
    }
  }

  private run(handle: () => Promise<void>): void {
    const work = handle().finally(() => this.running.delete(work));
    this.running.add(work);
  }

  private complain(error: unknown): void {
    const now = performance.now();
    if (now - this.lastComplaint < SAY_AGAIN_MS) return;
    this.lastComplaint = now;
    this.log.error(
      `cannot reach the outbox, events wait and the relay keeps trying: ${errorText(error)}`,
    );
  }

  private recovered(): void {
    this.retryMs = FIRST_RETRY_MS;
    if (this.lastComplaint === -Infinity) return;
    this.lastComplaint = -Infinity;
    this.log.log('the outbox can be reached again');
  }
}
