/** Several relays on one table: more of it, or only more of the same? */
import { setTimeout as sleep } from 'node:timers/promises';
import { OUTBOX_DEFAULTS, OUTBOX_TUNED, type Entry } from '../contenders/registry.ts';
import { nowUs } from '../harness/clock.ts';
import type { Moments } from '../harness/host.ts';
import type { Lab } from '../harness/lab.ts';
import { say } from '../harness/progress.ts';
import { range, rate, ratio, type Report } from '../harness/report.ts';
import { chosen } from '../harness/settings.ts';
import { median } from '../harness/statistics.ts';
import { fill, startMs } from './drain.ts';

const SAMPLE_MS = 20;
const WITHIN_MS = 300_000;

interface Run {
  readonly perSecond: number;
  readonly duplicates: number;
  readonly missing: number;
  /** Events that each process delivered. */
  readonly shares: readonly number[];
  readonly samples: Samples;
}

interface Samples {
  /** Sessions at work, over all samples. */
  readonly active: number;
  readonly lock: number;
  readonly lwlock: number;
  readonly io: number;
}

export async function processes(lab: Lab): Promise<Report> {
  const { rounds, processes: settings } = lab.settings;
  const entries = chosen(lab.settings, 'processes', [OUTBOX_DEFAULTS, OUTBOX_TUNED]);
  const results = new Map<string, Run[]>();
  const key = (entry: Entry, count: number): string => `${entry.key} × ${count}`;
  for (let round = 1; round <= rounds; round++) {
    for (const entry of entries) {
      for (const count of settings.counts) {
        const run = await drainTogether(lab, entry, count, settings.events);
        const name = key(entry, count);
        results.set(name, [...(results.get(name) ?? []), run]);
        say(
          `processes ${round}/${rounds} ${name}: ${rate(run.perSecond)}/s, ${run.duplicates} duplicates, ` +
            `shares ${run.shares.map((events) => events.toLocaleString('en-US')).join(' + ')}`,
        );
        if (run.missing > 0) throw new Error(`${name}: ${run.missing} events were never heard`);
      }
    }
  }

  const rows: string[][] = [];
  const figures: Record<string, string> = {};
  for (const entry of entries) {
    const one = (results.get(key(entry, settings.counts[0] ?? 1)) ?? []).map(
      ({ perSecond }) => perSecond,
    );
    for (const count of settings.counts) {
      const runs = results.get(key(entry, count)) ?? [];
      const speeds = runs.map(({ perSecond }) => perSecond);
      const total = runs.map(({ samples }) => samples);
      const duplicates = runs.reduce((sum, run) => sum + run.duplicates, 0);
      rows.push([
        entry.label,
        String(count),
        rate(median(speeds)),
        range(speeds, rate),
        ratio(median(speeds.map((speed, i) => speed / (one[i] ?? NaN)))),
        String(duplicates),
        share(total, ({ lock }) => lock),
        share(total, ({ lwlock }) => lwlock),
        share(total, ({ io }) => io),
      ]);
      figures[`processes.${entry.key}.${count}`] = rate(median(speeds));
      figures[`processes.${entry.key}.${count}.duplicates`] = String(duplicates);
    }
  }
  return {
    tables: [
      {
        caption:
          `${settings.events.toLocaleString('en-US')} events, stored at once while the relays sleep. Waits: of the ` +
          `samples (every ${SAMPLE_MS} ms) of sessions at work, how many waited for a lock (on a row, or on the file to enlarge it), for one of the ` +
          'server’s own locks, for the disk.',
        columns: [
          'contender',
          'processes',
          'events/s',
          'min–max',
          'to one',
          'duplicates',
          'locks',
          'server locks',
          'disk',
        ],
        rows,
      },
    ],
    figures,
    raw: Object.fromEntries(results),
  };
}

async function drainTogether(
  lab: Lab,
  entry: Entry,
  processCount: number,
  events: number,
): Promise<Run> {
  const url = await lab.freshDatabase();
  await fill(lab, entry, url, 0);
  const relays = Array.from({ length: processCount }, () => lab.spawn(entry, url));
  const filler = lab.spawn(entry, url);
  const watcher = await lab.connect(url);
  try {
    await Promise.all(relays.map((relay) => relay.call('listen')));
    // Each looks once, finds nothing and goes to sleep.
    await sleep(startMs(lab));
    await filler.call('fill', { count: events, slowEvery: 0 });
    const sampler = new Sampler(watcher);
    await Promise.all(relays.map((relay) => relay.call('wake')));
    const deadline = performance.now() + WITHIN_MS;
    for (;;) {
      const { rows } = await watcher.query<{ open: boolean }>(
        `SELECT EXISTS (SELECT FROM outbox_events WHERE status IN ('PENDING', 'PROCESSING')) AS open`,
      );
      if (rows[0]?.open !== true) break;
      if (performance.now() > deadline) throw new Error(`${events} events were not done in time`);
      await sampler.sample();
      await sleep(SAMPLE_MS);
    }
    const endUs = nowUs();
    const heard = await Promise.all(relays.map((relay) => relay.call<Moments>('heard')));
    const numbers = heard.flatMap((moments) => [...moments.numbers]);
    const startUs = heard
      .flatMap((moments) => [...moments.atUs])
      .reduce((a, b) => Math.min(a, b), Infinity);
    const distinct = new Set(numbers).size;
    return {
      perSecond: events / ((endUs - startUs) / 1e6),
      duplicates: numbers.length - distinct,
      missing: events - distinct,
      shares: heard.map((moments) => moments.numbers.length),
      samples: sampler.samples,
    };
  } finally {
    await watcher.end();
    await Promise.all([...relays, filler].map((child) => lab.end(child)));
  }
}

class Sampler {
  samples: Samples = { active: 0, lock: 0, lwlock: 0, io: 0 };
  private readonly client: Awaited<ReturnType<Lab['connect']>>;

  constructor(client: Awaited<ReturnType<Lab['connect']>>) {
    this.client = client;
  }

  async sample(): Promise<void> {
    const { rows } = await this.client.query<Record<keyof Samples, number>>(
      `SELECT count(*)::integer AS active,
              count(*) FILTER (WHERE wait_event_type = 'Lock')::integer AS lock,
              count(*) FILTER (WHERE wait_event_type = 'LWLock')::integer AS lwlock,
              count(*) FILTER (WHERE wait_event_type = 'IO')::integer AS io
       FROM pg_stat_activity
       WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid()`,
    );
    const [row] = rows;
    if (row === undefined) return;
    const { active, lock, lwlock, io } = this.samples;
    this.samples = {
      active: active + row.active,
      lock: lock + row.lock,
      lwlock: lwlock + row.lwlock,
      io: io + row.io,
    };
  }
}

function share(samples: readonly Samples[], of: (sample: Samples) => number): string {
  const active = samples.reduce((sum, sample) => sum + sample.active, 0);
  const waiting = samples.reduce((sum, sample) => sum + of(sample), 0);
  return active === 0 ? '–' : `${Math.round((waiting / active) * 100)} %`;
}
