/** How fast a backlog is delivered and settled, one process each. */
import { DRAINING, LIMITS, type Entry } from '../contenders/registry.ts';
import type { Drained } from '../harness/host.ts';
import type { Lab } from '../harness/lab.ts';
import type { Child } from '../harness/remote.ts';
import { say } from '../harness/progress.ts';
import { number, range, rate, ratio, type Report } from '../harness/report.ts';
import { chosen } from '../harness/settings.ts';
import { median } from '../harness/statistics.ts';

/** A contender that gets nowhere is given up: less than 60 events a second. */
const SLOWEST_PER_SECOND = 60;
const GRACE_MS = 30_000;

export interface DrainOf extends Drained {
  readonly perSecond: number;
}

/** A backlog in a fresh database, drained by one process. */
export async function drainOnce(
  lab: Lab,
  entry: Entry,
  count: number,
  extra: { sampleMemory?: boolean; slowMs?: number; slowEvery?: number } = {},
): Promise<DrainOf> {
  const { slowEvery = 0, ...request } = extra;
  const url = await lab.freshDatabase();
  const execArgv = request.sampleMemory === true ? ['--expose-gc'] : [];
  const filler = lab.spawn(entry, url, { execArgv });
  await prepare(lab, filler, url, count, slowEvery);
  // Filling warms up nothing; where speed does not matter, it may as well.
  const child = lab.settings.size === 'smoke' ? filler : lab.spawn(entry, url, { execArgv });
  if (child !== filler) await lab.end(filler);
  try {
    const drained = await child.call<Drained>(
      'drain',
      { count, postmaster: lab.postmaster, startMs: startMs(lab), ...request },
      GRACE_MS + (count / SLOWEST_PER_SECOND) * 1_000,
    );
    if (lab.settings.size === 'smoke' && drained.duplicates > 0)
      throw new Error(`${entry.key}: ${drained.duplicates} events were delivered twice`);
    return { ...drained, perSecond: count / drained.seconds };
  } finally {
    await lab.end(child);
  }
}

/** Long enough for a Nest application and the pg-boss in it. */
export function startMs({ settings }: Lab): number {
  return settings.size === 'smoke' ? 500 : 2_500;
}

/** A database with a backlog, made by a process of its own. */
export async function fill(
  lab: Lab,
  entry: Entry,
  url: string,
  count: number,
  slowEvery = 0,
): Promise<void> {
  const child = lab.spawn(entry, url);
  await prepare(lab, child, url, count, slowEvery);
  await lab.end(child);
}

async function prepare(
  lab: Lab,
  child: Child,
  url: string,
  count: number,
  slowEvery: number,
): Promise<void> {
  await child.call('prepare');
  if (count > 0) await child.call('fill', { count, slowEvery });
  await lab.settle(url);
}

export async function drain(lab: Lab): Promise<Report> {
  const { events, rounds, size } = lab.settings;
  const entries = chosen(lab.settings, 'drain', DRAINING);
  const results = new Map<string, DrainOf[]>(entries.map(({ key }) => [key, []]));
  // One round after the other, and not one contender after the other: what drifts, drifts for all.
  for (let round = 1; round <= rounds; round++) {
    for (const entry of entries) {
      try {
        const count = backlogOf(entry, events);
        const drained = await drainOnce(lab, entry, count);
        results.get(entry.key)?.push(drained);
        say(
          `drain ${round}/${rounds} ${entry.key}: ${rate(drained.perSecond)}/s, CPU per event ` +
            `Node ${number(drained.nodeCpuUs / count)} µs, PostgreSQL ${number((drained.postgresCpuUs ?? NaN) / count)} µs` +
            (drained.duplicates > 0 ? `, ${drained.duplicates} DUPLICATES` : ''),
        );
      } catch (error) {
        if (size === 'smoke') throw error;
        say(`drain ${round}/${rounds} ${entry.key}: did not finish. ${String(error)}`);
      }
    }
  }
  return report(entries, results, events);
}

function backlogOf({ share = 1 }: Entry, events: number): number {
  return Math.ceil(events * share);
}

function report(
  entries: readonly Entry[],
  results: ReadonlyMap<string, readonly DrainOf[]>,
  events: number,
): Report {
  const of = (key: string, value: (drained: DrainOf) => number): number[] =>
    (results.get(key) ?? []).map(value);
  const speeds = (key: string): number[] => of(key, ({ perSecond }) => perSecond);
  const best = LIMITS.map(({ key }) => ({ key, speed: median(speeds(key)) }))
    .filter(({ speed }) => !Number.isNaN(speed))
    .toSorted((a, b) => b.speed - a.speed)[0];
  const limits = best === undefined ? [] : speeds(best.key);
  // Within a round, and of these the median: the machine is then the same for both.
  const toLimit = (key: string): number =>
    median(speeds(key).flatMap((speed, i) => (limits[i] === undefined ? [] : speed / limits[i])));

  const node = (entry: Entry): number =>
    median(of(entry.key, ({ nodeCpuUs }) => nodeCpuUs / backlogOf(entry, events)));
  const postgres = (entry: Entry): number =>
    median(of(entry.key, ({ postgresCpuUs }) => (postgresCpuUs ?? NaN) / backlogOf(entry, events)));

  const rows = entries.map((entry) => {
    const { key, label, settings, without } = entry;
    return [
      key === best?.key ? `${label} ←` : label,
      settings,
      rate(median(speeds(key))),
      range(speeds(key), rate),
      ratio(toLimit(key)),
      number(node(entry)),
      number(postgres(entry)),
      without,
    ];
  });
  const figures = Object.fromEntries(
    entries.flatMap((entry) => [
      [`drain.${entry.key}`, rate(median(speeds(entry.key)))],
      [`drain.${entry.key}.ratio`, ratio(toLimit(entry.key))],
      [`drain.${entry.key}.node`, number(node(entry))],
      [`drain.${entry.key}.postgres`, number(postgres(entry))],
    ]),
  );
  if (best !== undefined) figures['drain.limit'] = rate(best.speed);
  return {
    tables: [
      {
        caption: `${events.toLocaleString('en-US')} events, delivered and settled by one process. ← marks the limit that ratios refer to.`,
        columns: [
          'contender',
          'settings',
          'events/s',
          'min–max',
          'of the limit',
          'Node µs/event',
          'PostgreSQL µs/event',
          'what it does not do',
        ],
        rows,
      },
    ],
    figures,
    raw: Object.fromEntries(results),
  };
}
