import type { BootstrapPublisher } from '../bootstrap/bootstrap.publisher.js';
import type { MonitoredRelay, OutboxMonitor } from '../monitor/outbox.monitor.js';
import type { Activity } from '../store/activity-store.js';
import type { OutboxStats, OutboxStore } from '../store/outbox-store.js';
import type { GateState, SentinelStats } from '../store/sentinel-store.js';
import { SPANS, type Span } from './series.js';
import { SharedReading } from './shared-reading.js';

const STATS_FRESH_MS = 2_000;
// Relays report every 15 seconds.
const REPORTS_FRESH_MS = 5_000;
const GATES_SHOWN = 10;

export interface GatesReading {
  readonly stats: SentinelStats;
  /** Those that failed last come first. */
  readonly failing: readonly GateState[];
}

/** What the overview asks of the database, once for everybody who looks. None of it scans the events. */
export class OverviewReadings {
  readonly stats: SharedReading<OutboxStats>;
  /** `null`: the store keeps no reports. */
  readonly relays: SharedReading<readonly MonitoredRelay[] | null>;
  /** `null`: the store has no gates. */
  readonly gates: SharedReading<GatesReading | null>;
  readonly activity: Readonly<Record<Span, SharedReading<readonly Activity[]>>>;

  constructor(store: OutboxStore, monitor: OutboxMonitor, publisher: BootstrapPublisher) {
    this.stats = new SharedReading(() => monitor.stats(), STATS_FRESH_MS);
    this.relays = new SharedReading<readonly MonitoredRelay[] | null>(
      async () => (store.activity === undefined ? null : monitor.relays()),
      REPORTS_FRESH_MS,
    );
    this.gates = new SharedReading<GatesReading | null>(async () => {
      if (store.sentinels === undefined) return null;
      const [stats, failing] = await Promise.all([
        publisher.stats(),
        publisher.gates({ limit: GATES_SHOWN }),
      ]);
      return { stats, failing };
    }, REPORTS_FRESH_MS);
    const activityOf = (span: Span): SharedReading<readonly Activity[]> =>
      new SharedReading(() => {
        const { sinceMs, stepMs } = SPANS[span];
        // The oldest step whole, although it began before the span.
        return monitor.activity({ sinceMs: sinceMs + stepMs, stepMs });
      }, REPORTS_FRESH_MS);
    this.activity = { hour: activityOf('hour'), day: activityOf('day') };
  }

  forget(): void {
    this.stats.forget();
    this.gates.forget();
  }
}
