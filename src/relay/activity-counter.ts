import type { ActivityCount } from '../store/activity-store.js';
import type { Settlement } from '../store/outbox-store.js';

// Event types come from data: a report stays small, whatever they are.
const MOST_TYPES = 1_000;
const OTHER_TYPES = '(other)';

type Counts = { -readonly [Key in keyof ActivityCount]: ActivityCount[Key] };

/** Counts what becomes of events, by type, between one report and the next. */
export class ActivityCounter {
  private counts = new Map<string, Counts>();
  private last: Counts | undefined;

  count(eventType: string, outcome: Settlement['outcome']): void {
    if (outcome === 'unheard' || outcome === 'released') return;
    const counts = this.last?.eventType === eventType ? this.last : this.of(eventType);
    if (outcome === 'completed') counts.delivered++;
    else if (outcome === 'retry') counts.retried++;
    else counts.failed++;
    this.last = counts;
  }

  /** What was counted since the last call. */
  take(): ActivityCount[] {
    const taken = [...this.counts.values()];
    this.counts = new Map();
    this.last = undefined;
    return taken;
  }

  private of(eventType: string): Counts {
    const known = this.counts.get(eventType);
    if (known !== undefined) return known;
    if (this.counts.size >= MOST_TYPES && eventType !== OTHER_TYPES) return this.of(OTHER_TYPES);
    const fresh = { eventType, delivered: 0, retried: 0, failed: 0 };
    this.counts.set(eventType, fresh);
    return fresh;
  }
}
