/** How fast events are written, and what they add to the transaction they are part of. */
import type { WayName } from '../contenders/enqueue-ways.ts';
import { OUTBOX_DEFAULTS } from '../contenders/registry.ts';
import type { Written } from '../harness/enqueue-host.ts';
import type { Lab } from '../harness/lab.ts';
import { say } from '../harness/progress.ts';
import { number, rate, ratio, type Report, type Table } from '../harness/report.ts';
import { chosen } from '../harness/settings.ts';
import { median } from '../harness/statistics.ts';
import { fill } from './drain.ts';

interface Row {
  readonly key: WayName;
  readonly label: string;
  /** What the ratio is to. */
  readonly against: WayName | undefined;
}

const SINGLES: readonly Row[] = [
  { key: 'business-only', label: 'BEGIN, business INSERT, COMMIT: no event', against: undefined },
  {
    key: 'insert-tx',
    label: 'the same with a bare event INSERT, prepared by name',
    against: undefined,
  },
  {
    key: 'insert-tx-unnamed',
    label: 'the same with a bare event INSERT, as most write it',
    against: 'insert-tx',
  },
  {
    key: 'enqueue-tx',
    label: 'the same with **`outbox.enqueue(…, { tx })`**',
    against: 'insert-tx',
  },
  { key: 'insert', label: 'a bare event INSERT alone', against: undefined },
  { key: 'insert-notify', label: 'the same with a NOTIFY in it', against: 'insert' },
  { key: 'enqueue', label: '**`outbox.enqueue(…)`** alone', against: 'insert' },
];

const MANY: readonly Row[] = [
  { key: 'recordset-1000', label: 'one INSERT from jsonb_to_recordset', against: undefined },
  { key: 'unnest-1000', label: 'one INSERT from unnest', against: undefined },
  { key: 'enqueue-many-1000', label: '**`outbox.enqueueMany(…)`**', against: 'recordset-1000' },
];

const MANY_CONCURRENCY = [1, 2];

export async function enqueue(lab: Lab): Promise<Report> {
  const { rounds, enqueue: settings, size } = lab.settings;
  const manyAt = size === 'smoke' ? [1] : MANY_CONCURRENCY;
  const singles = chosen(lab.settings, 'enqueue', SINGLES);
  const many = chosen(lab.settings, 'enqueue', MANY);
  const results = new Map<string, Written[]>();
  const nameOf = (way: WayName, concurrency: number): string => `${way} × ${concurrency}`;

  const url = await lab.freshDatabase();
  await fill(lab, OUTBOX_DEFAULTS, url, 0);
  for (let round = 1; round <= rounds; round++) {
    for (const { key: way } of [...singles, ...many]) {
      const levels = way.endsWith('1000') ? manyAt : settings.concurrency;
      const connections = Math.max(...levels);
      await lab.query(url, 'TRUNCATE outbox_events, orders');
      await lab.settle(url);
      const child = lab.spawn(
        { ...OUTBOX_DEFAULTS, key: way, module: way, options: { way, connections } },
        url,
        { program: 'enqueue-host.ts' },
      );
      try {
        for (const concurrency of levels) {
          const request = { concurrency, seconds: settings.seconds, postmaster: lab.postmaster };
          const written = await child.call<Written>('write', request);
          const name = nameOf(way, concurrency);
          results.set(name, [...(results.get(name) ?? []), written]);
          say(`enqueue ${round}/${rounds} ${name}: ${rate(written.count / written.seconds)}/s`);
        }
      } finally {
        await lab.end(child);
      }
    }
  }

  const speeds = (way: WayName, concurrency: number): number[] =>
    (results.get(nameOf(way, concurrency)) ?? []).map(({ count, seconds }) => count / seconds);
  const cpu = (way: WayName, concurrency: number, of: (written: Written) => number): string =>
    number(
      median(
        (results.get(nameOf(way, concurrency)) ?? []).map((written) => of(written) / written.count),
      ),
    );
  const compared = (way: WayName, against: WayName | undefined, concurrency: number): number => {
    if (against === undefined) return NaN;
    const others = speeds(against, concurrency);
    return median(speeds(way, concurrency).map((speed, i) => speed / (others[i] ?? NaN)));
  };
  const table = (caption: string, rows: readonly Row[], levels: readonly number[]): Table => ({
    caption,
    columns: [
      'what is written',
      ...levels.flatMap((level) => [`${level} at once`, 'ratio']),
      'Node µs/event',
      'PostgreSQL µs/event',
    ],
    rows: rows.map(({ key: way, label, against }) => [
      label,
      ...levels.flatMap((level) => [
        rate(median(speeds(way, level))),
        ratio(compared(way, against, level)),
      ]),
      cpu(way, levels.at(-1) ?? 1, ({ nodeCpuUs }) => nodeCpuUs),
      cpu(way, levels.at(-1) ?? 1, ({ postgresCpuUs }) => postgresCpuUs ?? NaN),
    ]),
  });

  const figures: Record<string, string> = {};
  for (const { key: way, against } of [...singles, ...many]) {
    for (const level of way.endsWith('1000') ? manyAt : settings.concurrency) {
      figures[`enqueue.${way}.${level}`] = rate(median(speeds(way, level)));
      figures[`enqueue.${way}.${level}.ratio`] = ratio(compared(way, against, level));
    }
  }
  return {
    tables: [
      table(
        'Events a second. The ratio of `enqueue` is to the bare INSERT in the same place; CPU at the highest concurrency.',
        singles,
        settings.concurrency,
      ),
      table(
        'Events a second, 1,000 in one statement. The ratio is to jsonb_to_recordset.',
        many,
        manyAt,
      ),
    ],
    figures,
    raw: Object.fromEntries(results),
  };
}
