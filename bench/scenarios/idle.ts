/** What an application costs in which nothing happens. */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  FULLSTACKHOUSE,
  GRAPHILE_DEFAULTS,
  OUTBOX_DEFAULTS,
  PG_BOSS_BEST,
  PG_TRANSACTIONAL_OUTBOX_README,
  type Entry,
} from '../contenders/registry.ts';
import { Lab } from '../harness/lab.ts';
import { postgresCpuUs } from '../harness/postgres-cpu.ts';
import { say } from '../harness/progress.ts';
import { number, type Report } from '../harness/report.ts';
import { chosen } from '../harness/settings.ts';
import { fill } from './drain.ts';

/** Starting up is not idling. */
const CALM_MS = 5_000;

const CONTENDERS: readonly Entry[] = [
  OUTBOX_DEFAULTS,
  { ...GRAPHILE_DEFAULTS, label: 'graphile-worker 0.18.0', options: {}, settings: 'defaults' },
  {
    ...PG_BOSS_BEST,
    label: 'pg-boss 12.38.0',
    options: { work: {} },
    settings: 'defaults',
  },
  PG_TRANSACTIONAL_OUTBOX_README,
  {
    ...FULLSTACKHOUSE,
    options: { pool: 10, module: { pollingInterval: 30_000, maxEventsPerPoll: 10 } },
    settings: 'README',
  },
];

export async function idle(given: Lab): Promise<Report> {
  const { settings } = given;
  const seconds = settings.idleSeconds;
  const calmMs = settings.size === 'smoke' ? 500 : CALM_MS;
  const rows: string[][] = [];
  const figures: Record<string, string> = {};
  const raw: Record<string, unknown> = {};
  // A server of its own: counting statements has a price, which the other scenarios need not pay.
  const lab = await Lab.open(settings, { shared_preload_libraries: 'pg_stat_statements' });
  try {
    for (const entry of chosen(settings, 'idle', CONTENDERS)) {
      const url = await lab.freshDatabase();
      await fill(lab, entry, url, 0);
      // One session for all questions: the CPU of one that ends is counted in hundredths of a second.
      const watcher = await lab.connect(url);
      await watcher.query('CREATE EXTENSION pg_stat_statements');
      const child = lab.spawn(entry, url);
      try {
        await child.call('listen');
        await sleep(calmMs);
        await watcher.query('SELECT pg_stat_statements_reset()');
        const before = postgresCpuUs(lab.postmaster);
        const { cpuUs } = await child.call<{ cpuUs: number }>('idle', { seconds });
        const after = postgresCpuUs(lab.postmaster);
        const { rows: statements } = await watcher.query<{ query: string; calls: number }>(
          `SELECT query, calls::integer FROM pg_stat_statements
           WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
             AND query NOT LIKE '%pg_stat_statements%'
           ORDER BY calls DESC`,
        );
        const {
          rows: [row],
        } = await watcher.query<{ connections: number }>(
          `SELECT count(*)::integer AS connections FROM pg_stat_activity
           WHERE datname = current_database() AND pid <> pg_backend_pid()`,
        );
        const calls = statements.reduce((sum, statement) => sum + statement.calls, 0);
        const postgresMs =
          before === undefined || after === undefined ? NaN : (after - before) / 1_000 / seconds;
        rows.push([
          entry.label,
          entry.settings,
          number(calls / seconds),
          String(row?.connections ?? '–'),
          number(cpuUs / 1_000 / seconds),
          number(postgresMs),
        ]);
        figures[`idle.${entry.key}.statements`] = number(calls / seconds);
        figures[`idle.${entry.key}.connections`] = String(row?.connections ?? '–');
        raw[entry.key] = { seconds, statements, connections: row?.connections, cpuUs, postgresMs };
        say(
          `idle ${entry.key}: ${number(calls / seconds)} statements/s, ${row?.connections} connections, ` +
            `Node ${number(cpuUs / 1_000 / seconds)} ms/s, PostgreSQL ${number(postgresMs)} ms/s`,
        );
      } finally {
        await lab.end(child);
        await watcher.end();
      }
    }
  } finally {
    await lab.close();
  }
  return {
    tables: [
      {
        caption:
          `One process with nothing to do for ${seconds} s. CPU in milliseconds a second (10 is one per cent of a ` +
          'core); PostgreSQL’s includes what it does by itself.',
        columns: [
          'contender',
          'settings',
          'statements/s',
          'connections',
          'Node ms/s',
          'PostgreSQL ms/s',
        ],
        rows,
      },
    ],
    figures,
    raw,
  };
}
