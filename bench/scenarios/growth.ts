/** What a large table, an old snapshot and pruning do to the relay. */
import { FILLER } from '../contenders/contender.ts';
import { OUTBOX_DEFAULTS, type Entry } from '../contenders/registry.ts';
import { dueSql, payloadsSql } from '../contenders/sql.ts';
import type { Drained } from '../harness/host.ts';
import type { Lab } from '../harness/lab.ts';
import { say } from '../harness/progress.ts';
import { number, rate, ratio, type Report, type Table } from '../harness/report.ts';
import { chosen } from '../harness/settings.ts';
import { median } from '../harness/statistics.ts';
import { fill, startMs } from './drain.ts';

const BATCH = 100;
const EMPTY_POLLS = 50;
/** Of the claims in a drain, so many at each end are compared. */
const ENDS = 50;
const LONG_AGO = `interval '30 days'`;

const SEED_TABLE: Entry = {
  key: 'limit',
  label: '',
  module: 'contenders/limit.ts',
  options: { batch: BATCH, loops: 1, table: 'seed', shape: 'apart' },
  settings: '',
  without: '',
};

interface Claimer extends Entry {
  readonly kind: 'id-in' | 'outbox';
  readonly withoutIndex?: boolean;
}

const CLAIMERS: readonly Claimer[] = [
  {
    ...SEED_TABLE,
    key: 'no-index',
    label: '`id IN (SELECT … SKIP LOCKED)`, no index on the state',
    kind: 'id-in',
    withoutIndex: true,
  },
  {
    ...SEED_TABLE,
    key: 'partial-index',
    label: '`id IN (SELECT … SKIP LOCKED)`, partial index on PENDING',
    kind: 'id-in',
  },
  { ...OUTBOX_DEFAULTS, key: 'outbox', label: '**nestjs-outbox-relay**', kind: 'outbox' },
];

const SNAPSHOT: readonly Entry[] = [
  {
    ...SEED_TABLE,
    key: 'naive',
    label: 'oldest first, no lower bound (the limit’s joined statement)',
    options: { batch: BATCH, loops: 1, table: 'seed', shape: 'joined' },
  },
  {
    ...OUTBOX_DEFAULTS,
    key: 'outbox',
    label: '**nestjs-outbox-relay**, defaults',
    options: { timeClaims: true },
  },
];

export async function growth(lab: Lab): Promise<Report> {
  const figures: Record<string, string> = {};
  const raw: Record<string, unknown> = {};
  const tables = [
    await claimsInLargeTables(lab, figures, raw),
    await claimsUnderAnOldSnapshot(lab, figures, raw),
    await drainsWhilePruning(lab, figures, raw),
  ];
  return { tables, figures, raw };
}

async function claimsInLargeTables(
  lab: Lab,
  figures: Record<string, string>,
  raw: Record<string, unknown>,
): Promise<Table> {
  const { completed, delayed, claims } = lab.settings.growth;
  const sizes = [0, completed];
  const rows: string[][] = [];
  for (const claimer of chosen(lab.settings, 'growth', CLAIMERS)) {
    const row = [claimer.label];
    const empties: string[] = [];
    for (const size of sizes) {
      const url = await lab.freshDatabase();
      await fill(lab, claimer, url, 0);
      if (claimer.withoutIndex)
        await lab.query(url, 'DROP INDEX idx_outbox_events_status_scheduled');
      await storeHistory(lab, url, size, delayed, claims * BATCH);
      const child = lab.spawn({ ...claimer, options: { kind: claimer.kind } }, url, {
        program: 'claims-host.ts',
      });
      try {
        // A scan of millions of rows is as slow the tenth time as the hundredth.
        const times = claimer.withoutIndex && size > 1_000_000 ? 20 : claims;
        const took = await child.call<number[]>('claim', { batch: BATCH, times });
        await lab.query(
          url,
          `DELETE FROM outbox_events WHERE status = 'PENDING' AND scheduled_at <= now()`,
        );
        const polls = claimer.withoutIndex && size > 1_000_000 ? 5 : EMPTY_POLLS;
        const empty = await child.call<number[]>('claim', { batch: BATCH, times: polls });
        row.push(number(median(took)));
        empties.push(number(median(empty)));
        figures[`growth.claim.${claimer.key}.${size === 0 ? 'small' : 'large'}`] = number(
          median(took),
        );
        figures[`growth.empty.${claimer.key}.${size === 0 ? 'small' : 'large'}`] = number(
          median(empty),
        );
        raw[`claim ${claimer.key} ${size}`] = { took, empty };
        say(
          `growth ${claimer.key}, ${size.toLocaleString('en-US')} completed: claim ${number(median(took))} ms, ` +
            `empty poll ${number(median(empty))} ms`,
        );
      } finally {
        await lab.end(child);
      }
    }
    rows.push([...row, ...empties]);
  }
  const names = sizes.map((size) => size.toLocaleString('en-US'));
  return {
    caption:
      `Median milliseconds of a claim of ${BATCH}, and of a poll that finds nothing, with so many COMPLETED rows ` +
      `in the table and ${delayed.toLocaleString('en-US')} delayed ones.`,
    columns: [
      'claim',
      ...names.map((name) => `claim, ${name}`),
      ...names.map((name) => `empty poll, ${name}`),
    ],
    rows,
  };
}

/** What a table looks like after months: finished rows, delayed ones, and some that are due. */
async function storeHistory(
  lab: Lab,
  url: string,
  completed: number,
  delayed: number,
  due: number,
): Promise<void> {
  const client = await lab.connect(url);
  try {
    if (completed > 0) {
      // Random ids into an index of millions take minutes; an index built at once does not.
      await client.query('ALTER TABLE outbox_events DROP CONSTRAINT outbox_events_pkey');
      await client.query(
        `INSERT INTO outbox_events (event_type, payload, status, processed_at, created_at, scheduled_at)
         SELECT 'bench.event', jsonb_build_object('n', g, 'slow', false, 'text', '${FILLER}'), 'COMPLETED',
                since + g * interval '100 milliseconds', since + g * interval '100 milliseconds',
                since + g * interval '100 milliseconds'
         FROM generate_series(1, ${completed}) AS g, (SELECT now() - ${LONG_AGO} AS since) AS start`,
      );
      await client.query('ALTER TABLE outbox_events ADD PRIMARY KEY (id)');
    }
    await client.query(
      `INSERT INTO outbox_events (event_type, payload, scheduled_at)
       SELECT 'bench.event', payload, now() + interval '1 day' + n * interval '1 second'
       FROM (${payloadsSql({ count: delayed, slowEvery: 0 })}) AS p`,
    );
    await client.query(
      `INSERT INTO outbox_events (event_type, payload, scheduled_at)
       SELECT 'bench.event', payload, ${dueSql(due)} FROM (${payloadsSql({ count: due, slowEvery: 0 })}) AS p ORDER BY n`,
    );
  } finally {
    await client.end();
  }
  await lab.settle(url);
}

async function claimsUnderAnOldSnapshot(
  lab: Lab,
  figures: Record<string, string>,
  raw: Record<string, unknown>,
): Promise<Table> {
  const { underSnapshot: count } = lab.settings.growth;
  const rows: string[][] = [];
  for (const entry of chosen(lab.settings, 'growth', SNAPSHOT)) {
    for (const held of lab.settings.size === 'smoke' ? [true] : [false, true]) {
      const url = await lab.freshDatabase();
      await fill(lab, entry, url, count);
      const forgotten = await lab.connect(url);
      await forgotten.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
      if (held) await forgotten.query('SELECT count(*) FROM pg_class');
      const child = lab.spawn(entry, url);
      try {
        const drained = await child.call<Drained>('drain', {
          count,
          postmaster: lab.postmaster,
          startMs: startMs(lab),
        });
        const times = await child.call<number[]>('claimTimes');
        const first = median(times.slice(0, ENDS));
        const last = median(times.slice(-ENDS - 1, -1));
        const name = `${entry.key}.${held ? 'held' : 'free'}`;
        figures[`growth.snapshot.${name}`] = ratio(last / first);
        raw[`snapshot ${name}`] = { ...drained, first, last };
        rows.push([
          entry.label,
          held ? 'held' : 'none',
          number(first),
          number(last),
          ratio(last / first),
          rate(drained.tenths.at(0) ?? NaN),
          rate(drained.tenths.at(-1) ?? NaN),
        ]);
        say(
          `growth ${entry.key}, old snapshot ${held ? 'held' : 'none'}: claims ${number(first)} → ${number(last)} ms`,
        );
      } finally {
        await lab.end(child);
        await forgotten.end();
      }
    }
  }
  return {
    caption:
      `${count.toLocaleString('en-US')} events drained, ${BATCH} a claim, while another session holds an old snapshot: ` +
      `median milliseconds of the first and the last ${ENDS} claims (each settles the batch before), and events a ` +
      'second in the first and the last tenth.',
    columns: ['claim', 'old snapshot', 'first', 'last', 'ratio', 'first tenth/s', 'last tenth/s'],
    rows,
  };
}

async function drainsWhilePruning(
  lab: Lab,
  figures: Record<string, string>,
  raw: Record<string, unknown>,
): Promise<Table> {
  const { rounds, events, growth: sizes } = lab.settings;
  const speeds = { without: [] as number[], with: [] as number[] };
  const prunedPerSecond: number[] = [];
  for (let round = 1; round <= rounds; round++) {
    for (const pruning of lab.settings.size === 'smoke' ? [true] : [false, true]) {
      const url = await lab.freshDatabase();
      await fill(lab, OUTBOX_DEFAULTS, url, 0);
      await storeHistory(lab, url, sizes.pruned, 0, 0);
      const filler = lab.spawn(OUTBOX_DEFAULTS, url);
      await filler.call('fill', { count: events, slowEvery: 0 });
      await lab.settle(url);
      const relay = lab.spawn(OUTBOX_DEFAULTS, url);
      try {
        const started = performance.now();
        const pruned = pruning ? filler.call<number>('prune') : undefined;
        const rated = pruned?.then((count) => count / ((performance.now() - started) / 1_000));
        const drained = await relay.call<Drained>('drain', {
          count: events,
          postmaster: lab.postmaster,
          startMs: startMs(lab),
        });
        speeds[pruning ? 'with' : 'without'].push(events / drained.seconds);
        if (rated !== undefined) prunedPerSecond.push(await rated);
        say(
          `growth ${round}/${rounds} drain ${pruning ? 'while pruning' : 'alone'}: ${rate(events / drained.seconds)}/s`,
        );
      } finally {
        await lab.end(relay);
        await lab.end(filler);
      }
    }
  }
  const slowdown = median(speeds.with.map((speed, i) => speed / (speeds.without[i] ?? NaN)));
  figures['growth.pruning.ratio'] = ratio(slowdown);
  figures['growth.pruning.perSecond'] = rate(median(prunedPerSecond));
  figures['growth.pruning.minutes'] = number(10_000_000 / median(prunedPerSecond) / 60);
  raw['pruning'] = { speeds, prunedPerSecond };
  return {
    caption:
      `${events.toLocaleString('en-US')} events drained with defaults while another process deletes ` +
      `${sizes.pruned.toLocaleString('en-US')} old COMPLETED rows, 1,000 a statement, without a pause.`,
    columns: ['', 'events/s', 'ratio', 'rows deleted/s'],
    rows: [
      ['alone', rate(median(speeds.without)), '', ''],
      ['while pruning', rate(median(speeds.with)), ratio(slowdown), rate(median(prunedPerSecond))],
    ],
  };
}
