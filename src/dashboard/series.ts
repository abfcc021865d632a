import type { Activity } from '../store/activity-store.js';

/** A span of time the charts can show. */
export type Span = 'hour' | 'day';

interface SpanLength {
  readonly sinceMs: number;
  readonly stepMs: number;
}

const MINUTE_MS = 60_000;

/** A day in steps of ten minutes: 144 points are as many as can be told apart. */
export const SPANS: Readonly<Record<Span, SpanLength>> = {
  hour: { sinceMs: 60 * MINUTE_MS, stepMs: MINUTE_MS },
  day: { sinceMs: 24 * 60 * MINUTE_MS, stepMs: 10 * MINUTE_MS },
};

export type Counts = Pick<Activity, 'delivered' | 'retried' | 'failed'>;

/** What the chart draws: a number per minute for each step, with zeros where nothing happened. */
export interface Series {
  /** When each step began, in seconds since 1970. */
  readonly at: number[];
  readonly delivered: number[];
  readonly retried: number[];
  readonly failed: number[];
}

export interface TypeTotal extends Counts {
  readonly eventType: string;
}

/**
 * The step that is under way is left out: half a minute would look like a drop.
 * @param now in milliseconds since 1970
 */
export function seriesOf(activity: readonly Activity[], span: Span, now: number): Series {
  const { sinceMs, stepMs } = SPANS[span];
  const steps = sinceMs / stepMs;
  const first = Math.floor(now / stepMs) * stepMs - steps * stepMs;
  const zeros = (): number[] => Array.from({ length: steps }, () => 0);
  const series: Series = {
    at: Array.from({ length: steps }, (_, i) => (first + i * stepMs) / 1_000),
    delivered: zeros(),
    retried: zeros(),
    failed: zeros(),
  };
  const perMinute = MINUTE_MS / stepMs;
  for (const { at, ...counts } of activity) {
    const step = Math.floor((at.getTime() - first) / stepMs);
    for (const key of ['delivered', 'retried', 'failed'] as const) {
      const line = series[key];
      const before = line[step];
      if (before !== undefined) line[step] = rounded(before + counts[key] * perMinute);
    }
  }
  return series;
}

/** By event type, those with the most to tell first. */
export function totalsByType(activity: readonly Activity[]): TypeTotal[] {
  const totals = new Map<string, TypeTotal>();
  for (const { eventType, delivered, retried, failed } of activity) {
    const before = totals.get(eventType) ?? { eventType, delivered: 0, retried: 0, failed: 0 };
    totals.set(eventType, {
      eventType,
      delivered: before.delivered + delivered,
      retried: before.retried + retried,
      failed: before.failed + failed,
    });
  }
  return [...totals.values()].toSorted(
    (a, b) =>
      b.failed - a.failed || b.delivered - a.delivered || (a.eventType < b.eventType ? -1 : 1),
  );
}

function rounded(perMinute: number): number {
  return Math.round(perMinute * 100) / 100;
}
