import {
  ActivityStore,
  type Activity,
  type ActivityRequest,
  type RelayReport,
  type RelayState,
} from '../activity-store.js';

interface Reported {
  readonly state: Omit<RelayState, 'silentMs'>;
  readonly reports: number;
}

interface Row extends Omit<Activity, 'at'> {
  readonly minute: number;
}

const MINUTE_MS = 60_000;
const RELAYS_KEPT_MS = 24 * 60 * MINUTE_MS;
const ACTIVITY_KEPT_MS = 25 * 60 * MINUTE_MS;

/** Reports in memory, by the same rules as in PostgreSQL. */
export class InMemoryActivityStore extends ActivityStore {
  private readonly known = new Map<string, Reported>();
  private rows: Row[] = [];

  /** @param now the store's clock, in milliseconds */
  constructor(private readonly now: () => number) {
    super();
  }

  async report(report: RelayReport): Promise<void> {
    const { relayId, name, version, listeners, number, stopped, activity } = report;
    const now = this.now();
    this.forget(now);
    const before = this.known.get(relayId);
    if (before !== undefined && before.reports >= number) return;
    // At the end: who is heard last comes first in the list, also within a millisecond.
    this.known.delete(relayId);
    this.known.set(relayId, {
      reports: number,
      state: {
        relayId,
        name,
        version,
        listeners: structuredClone(listeners),
        startedAt: before?.state.startedAt ?? new Date(now),
        seenAt: new Date(now),
        stoppedAt: stopped ? new Date(now) : null,
      },
    });
    const minute = startOf(now, MINUTE_MS);
    for (const counts of activity) this.rows.push({ minute, ...counts });
  }

  async relays(): Promise<RelayState[]> {
    const now = this.now();
    return [...this.known.values()]
      .toReversed()
      .map(({ state }) => Object.assign({ silentMs: now - state.seenAt.getTime() }, state));
  }

  async activity({ sinceMs, stepMs, eventType }: ActivityRequest): Promise<Activity[]> {
    const since = this.now() - sinceMs;
    const steps = new Map<string, Activity>();
    for (const row of this.rows) {
      if (row.minute <= since || (eventType !== undefined && row.eventType !== eventType)) continue;
      const at = startOf(row.minute, stepMs);
      const key = `${String(at).padStart(15, '0')} ${row.eventType}`;
      const { delivered = 0, retried = 0, failed = 0 } = steps.get(key) ?? {};
      steps.set(key, {
        at: new Date(at),
        eventType: row.eventType,
        delivered: delivered + row.delivered,
        retried: retried + row.retried,
        failed: failed + row.failed,
      });
    }
    return [...steps.entries()].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, step]) => step);
  }

  private forget(now: number): void {
    for (const [id, { state }] of this.known)
      if (state.seenAt.getTime() < now - RELAYS_KEPT_MS) this.known.delete(id);
    this.rows = this.rows.filter(({ minute }) => minute >= now - ACTIVITY_KEPT_MS);
  }
}

function startOf(time: number, stepMs: number): number {
  return Math.floor(time / stepMs) * stepMs;
}
