/** From the answer to COMMIT, in the process that enqueues, to the call of the listener. */
import {
  GRAPHILE_DEFAULTS,
  OUTBOX_DEFAULTS,
  PG_BOSS_BEST,
  type Entry,
} from '../contenders/registry.ts';
import type { Moments } from '../harness/host.ts';
import type { Lab } from '../harness/lab.ts';
import { say } from '../harness/progress.ts';
import { number, range, type Report } from '../harness/report.ts';
import { chosen } from '../harness/settings.ts';
import { median, percentile } from '../harness/statistics.ts';
import { fill } from './drain.ts';

interface LatencyEntry extends Entry {
  /** The relay's own process enqueues. */
  readonly sameProcess?: boolean;
}

const CONTENDERS: readonly LatencyEntry[] = [
  {
    key: 'limit',
    label: 'bare LISTEN/NOTIFY and claim, another process',
    module: 'contenders/limit.ts',
    options: { batch: 100, loops: 1, table: 'seed', shape: 'joined', listen: true },
    settings: 'NOTIFY in the transaction',
    without: '',
  },
  {
    ...OUTBOX_DEFAULTS,
    key: 'outbox-same',
    label: '**nestjs-outbox-relay**, same process',
    sameProcess: true,
    settings: 'defaults',
  },
  {
    ...OUTBOX_DEFAULTS,
    key: 'outbox-other',
    label: '**nestjs-outbox-relay**, another process',
    settings: 'defaults',
  },
  {
    ...GRAPHILE_DEFAULTS,
    key: 'graphile',
    label: 'graphile-worker 0.18.0, another process',
  },
  {
    ...PG_BOSS_BEST,
    key: 'pg-boss',
    label: 'pg-boss 12.38.0, another process',
    options: { work: { batchSize: 100 }, notify: true },
    settings: 'useListenNotify, batchSize 100',
  },
];

const LONGEST_WARM_UP_SECONDS = 1;
const HEARD_WITHIN_MS = 40_000;

interface Latencies {
  readonly ms: readonly number[];
  /** Commits a second, as it came out. */
  readonly perSecond: number;
}

export async function latency(lab: Lab): Promise<Report> {
  const { rounds, latency: settings } = lab.settings;
  const entries = chosen(lab.settings, 'latency', CONTENDERS);
  const results = new Map<string, Latencies[]>(entries.map(({ key }) => [key, []]));
  for (let round = 1; round <= rounds; round++) {
    for (const entry of entries) {
      const measured = await measure(lab, entry);
      results.get(entry.key)?.push(measured);
      say(
        `latency ${round}/${rounds} ${entry.key}: p50 ${number(percentile(measured.ms, 50))} ms, ` +
          `p99 ${number(percentile(measured.ms, 99))} ms at ${number(measured.perSecond)}/s`,
      );
    }
  }
  const of = (key: string, percent: number): number[] =>
    (results.get(key) ?? []).map(({ ms }) => percentile(ms, percent));
  return {
    tables: [
      {
        caption:
          `${settings.perSecond} events a second for ${settings.seconds} s at irregular moments, each in a business ` +
          'transaction: milliseconds from the answer to COMMIT to the call of the listener. ' +
          'It can be below zero: the listener may be called before the answer has been read.',
        columns: ['contender', 'settings', 'p50', 'min–max', 'p99', 'min–max', 'largest'],
        rows: entries.map(({ key, label, settings: named }) => [
          label,
          named,
          number(median(of(key, 50))),
          range(of(key, 50), number),
          number(median(of(key, 99))),
          range(of(key, 99), number),
          number(Math.max(...of(key, 100))),
        ]),
      },
    ],
    figures: Object.fromEntries(
      entries.flatMap(({ key }) => [
        [`latency.${key}.p50`, number(median(of(key, 50)))],
        [`latency.${key}.p99`, number(median(of(key, 99)))],
      ]),
    ),
    raw: Object.fromEntries(results),
  };
}

async function measure(lab: Lab, entry: LatencyEntry): Promise<Latencies> {
  const { perSecond, seconds } = lab.settings.latency;
  const url = await lab.freshDatabase();
  await fill(lab, entry, url, 0);
  const relay = lab.spawn(entry, url);
  const enqueuer = entry.sameProcess === true ? relay : lab.spawn(entry, url);
  try {
    await relay.call('listen');
    const warmUp = Math.ceil(perSecond * Math.min(LONGEST_WARM_UP_SECONDS, seconds));
    const count = Math.ceil(perSecond * seconds);
    await enqueuer.call('pace', { perSecond, count: warmUp, from: 1 });
    await untilHeard(relay, warmUp);
    const committed = await enqueuer.call<Moments>('pace', { perSecond, count, from: warmUp + 1 });
    const heard = await untilHeard(relay, warmUp + count);
    const heardAt = new Map([...heard.numbers].map((n, i) => [n, heard.atUs[i] ?? NaN]));
    const at = committed.atUs;
    return {
      ms: [...committed.numbers].map((n, i) => ((heardAt.get(n) ?? NaN) - (at[i] ?? NaN)) / 1_000),
      perSecond: count / ((Math.max(...at) - Math.min(...at)) / 1e6),
    };
  } finally {
    if (enqueuer !== relay) await lab.end(enqueuer);
    await lab.end(relay);
  }
}

async function untilHeard(
  relay: { call<T>(method: string): Promise<T> },
  count: number,
): Promise<Moments> {
  const deadline = performance.now() + HEARD_WITHIN_MS;
  for (;;) {
    const heard = await relay.call<Moments>('heard');
    if (new Set(heard.numbers).size >= count) return heard;
    if (performance.now() > deadline)
      throw new Error(`only ${heard.numbers.length} of ${count} events were heard`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
