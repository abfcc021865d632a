import { setTimeout as sleep } from 'node:timers/promises';
import type { OutboxStats } from '../store/outbox-store.js';
import type { SentinelStats } from '../store/sentinel-store.js';

/** Where the gauges come from. */
export interface GaugeSource {
  /** Whether this process relays right now. */
  readonly relaying: () => boolean;
  readonly events: () => Promise<OutboxStats>;
  /** `undefined`: the store has no gates. */
  readonly gates: () => Promise<SentinelStats | undefined>;
}

export interface GaugeReading {
  readonly events: OutboxStats;
  readonly gates: SentinelStats | undefined;
}

// Several readers (Prometheus, a push exporter) may collect at the same time, and some do so every second.
const ASK_EVERY_MS = 5_000;

// A collection waits for the slowest of its gauges, and a scrape is given up after 10 s by default.
const ANSWER_WITHIN_MS = 3_000;

/** Asks the store on behalf of the gauges: not too often, and not for too long. */
export class GaugeReader {
  private asked: Promise<GaugeReading | undefined> | undefined;
  private askedAt = -Infinity;
  private waiting = false;

  constructor(
    private readonly source: GaugeSource,
    private readonly answerWithinMs = ANSWER_WITHIN_MS,
    private readonly askEveryMs = ASK_EVERY_MS,
  ) {}

  /** `undefined`: the store fails, or does not answer in time. */
  async read(): Promise<GaugeReading | undefined> {
    const now = performance.now();
    if (this.asked === undefined || (!this.waiting && now - this.askedAt >= this.askEveryMs)) {
      this.askedAt = now;
      this.asked = this.ask();
    }
    const enough = new AbortController();
    const limit = sleep(this.answerWithinMs, undefined, { signal: enough.signal, ref: false });
    try {
      return await Promise.race([this.asked, limit.catch(() => undefined)]);
    } finally {
      enough.abort();
    }
  }

  private async ask(): Promise<GaugeReading | undefined> {
    this.waiting = true;
    try {
      const [events, gates] = await Promise.all([this.source.events(), this.source.gates()]);
      return { events, gates };
    } catch {
      // The relay says it, with restraint, when the store cannot be reached.
      return undefined;
    } finally {
      this.waiting = false;
    }
  }
}
