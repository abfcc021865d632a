/** One type takes a second, another nothing: how long do the fast ones wait? */
import { GRAPHILE_DEFAULTS, OUTBOX_DEFAULTS, type Entry } from '../contenders/registry.ts';
import type { Lab } from '../harness/lab.ts';
import { say } from '../harness/progress.ts';
import { number, range, type Report } from '../harness/report.ts';
import { chosen } from '../harness/settings.ts';
import { median } from '../harness/statistics.ts';
import { drainOnce, type DrainOf } from './drain.ts';

const PLACES = 10;

const CONTENDERS: readonly Entry[] = [
  {
    key: 'batch-loop',
    label: 'a loop that waits for its whole batch',
    module: 'contenders/limit.ts',
    options: { batch: PLACES, loops: 1, table: 'seed', shape: 'apart' },
    settings: `batch ${PLACES}`,
    without: '',
  },
  { ...OUTBOX_DEFAULTS, settings: `defaults (concurrency ${PLACES})` },
  { ...GRAPHILE_DEFAULTS, settings: `concurrentJobs ${PLACES}` },
  {
    ...GRAPHILE_DEFAULTS,
    key: 'graphile-worker-batching',
    label: 'graphile-worker 0.18.0, batching',
    options: { concurrentJobs: PLACES, localQueue: { size: 100 }, completeJobBatchDelay: 20 },
    settings: `concurrentJobs ${PLACES}, localQueue 100, completeJobBatchDelay 20`,
  },
];

export async function slowListener(lab: Lab): Promise<Report> {
  const { rounds, slow } = lab.settings;
  const entries = chosen(lab.settings, 'slow-listener', CONTENDERS);
  const results = new Map<string, DrainOf[]>(entries.map(({ key }) => [key, []]));
  for (let round = 1; round <= rounds; round++) {
    for (const entry of entries) {
      const drained = await drainOnce(lab, entry, slow.events, {
        slowEvery: slow.every,
        slowMs: slow.ms,
      });
      results.get(entry.key)?.push(drained);
      say(
        `slow-listener ${round}/${rounds} ${entry.key}: fast ones done after ${number(drained.fastSeconds)} s, ` +
          `all after ${number(drained.seconds)} s`,
      );
    }
  }
  const slowOnes = Math.ceil(slow.events / slow.every);
  const of = (key: string, value: (drained: DrainOf) => number): number[] =>
    (results.get(key) ?? []).map(value);
  return {
    tables: [
      {
        caption:
          `${slow.events.toLocaleString('en-US')} events, every ${slow.every}th of a type whose listener takes ` +
          `${slow.ms.toLocaleString('en-US')} ms, ${PLACES} places. The slow ones alone fill the places for ` +
          `${number((slowOnes * slow.ms) / 1_000 / PLACES)} s: nobody can be done with all sooner.`,
        columns: [
          'contender',
          'settings',
          'fast ones done after (s)',
          'min–max',
          'all done after (s)',
        ],
        rows: entries.map(({ key, label, settings }) => [
          label,
          settings,
          number(median(of(key, ({ fastSeconds }) => fastSeconds))),
          range(
            of(key, ({ fastSeconds }) => fastSeconds),
            number,
          ),
          number(median(of(key, ({ seconds }) => seconds))),
        ]),
      },
    ],
    figures: Object.fromEntries(
      entries.map(({ key }) => [
        `slow.${key}.fast`,
        number(median(of(key, ({ fastSeconds }) => fastSeconds))),
      ]),
    ),
    raw: Object.fromEntries(results),
  };
}
