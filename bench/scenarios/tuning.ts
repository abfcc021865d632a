/** What `batchSize` and `concurrency` do to the speed of a drain. */
import { OUTBOX_DEFAULTS, type Entry } from '../contenders/registry.ts';
import type { Lab } from '../harness/lab.ts';
import { say } from '../harness/progress.ts';
import { number, range, rate, ratio, type Report } from '../harness/report.ts';
import { chosen } from '../harness/settings.ts';
import { median } from '../harness/statistics.ts';
import { drainOnce, type DrainOf } from './drain.ts';

const BATCH_SIZES = [20, 100, 300, 1_000];
const CONCURRENCIES = [10, 100, 1_000];

interface Tuning extends Entry {
  readonly batchSize: number;
  readonly concurrency: number;
}

const tuned = (batchSize: number, concurrency: number): Tuning => ({
  ...OUTBOX_DEFAULTS,
  key: batchSize === 100 && concurrency === 10 ? 'outbox' : `${batchSize}-${concurrency}`,
  options: { relay: { batchSize, concurrency } },
  batchSize,
  concurrency,
});

const TUNINGS: readonly Tuning[] = BATCH_SIZES.flatMap((batchSize) =>
  CONCURRENCIES.map((concurrency) => tuned(batchSize, concurrency)),
);

export async function tuning(lab: Lab): Promise<Report> {
  const { rounds, tuningEvents: events } = lab.settings;
  const tunings = chosen(lab.settings, 'tuning', TUNINGS);
  const results = new Map<string, DrainOf[]>(tunings.map(({ key }) => [key, []]));
  for (let round = 1; round <= rounds; round++) {
    for (const entry of tunings) {
      const drained = await drainOnce(lab, entry, events);
      results.get(entry.key)?.push(drained);
      say(
        `tuning ${round}/${rounds} batchSize ${entry.batchSize}, concurrency ${entry.concurrency}: ` +
          `${rate(drained.perSecond)}/s`,
      );
    }
  }
  const of = (key: string, value: (drained: DrainOf) => number): number[] =>
    (results.get(key) ?? []).map(value);
  const defaults = of('outbox', ({ perSecond }) => perSecond);
  return {
    tables: [
      {
        caption: `${events.toLocaleString('en-US')} events, one process. The ratio is to the defaults, 100 and 10.`,
        columns: [
          'batchSize',
          'concurrency',
          'events/s',
          'min–max',
          'ratio',
          'Node µs/event',
          'PostgreSQL µs/event',
        ],
        rows: tunings.map(({ key, batchSize, concurrency }) => {
          const speeds = of(key, ({ perSecond }) => perSecond);
          return [
            batchSize.toLocaleString('en-US'),
            concurrency.toLocaleString('en-US'),
            rate(median(speeds)),
            range(speeds, rate),
            ratio(median(speeds.map((speed, i) => speed / (defaults[i] ?? NaN)))),
            number(median(of(key, ({ nodeCpuUs }) => nodeCpuUs / events))),
            number(median(of(key, ({ postgresCpuUs }) => (postgresCpuUs ?? NaN) / events))),
          ];
        }),
      },
    ],
    figures: Object.fromEntries(
      tunings.map(({ batchSize, concurrency, key }) => [
        `tuning.${batchSize}.${concurrency}`,
        rate(median(of(key, ({ perSecond }) => perSecond))),
      ]),
    ),
    raw: Object.fromEntries(results),
  };
}
