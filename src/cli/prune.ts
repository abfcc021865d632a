import type { Command } from 'commander';
import { invalid } from '../event/outbox-error.js';
import { InboxTable } from '../inbox/inbox-table.js';
import { AS_TEXT, ask } from '../store/postgres/pg-pool.js';
import { optionsOf, type Cli, type Database, type GlobalOptions } from './cli.js';
import { EXIT } from './exit-code.js';
import { Progress } from './progress.js';
import { count, duration } from './units.js';

interface PruneOptions extends GlobalOptions {
  readonly completedOlderThan?: number;
  readonly failedOlderThan?: number;
  readonly inboxOlderThan?: number;
  readonly dryRun?: boolean;
}

interface Kind {
  readonly name: 'completed' | 'failed' | 'inbox';
  readonly olderThanMs: number | undefined;
  readonly count: (olderThanMs: number) => Promise<number>;
  readonly prune: (olderThanMs: number, limit: number) => Promise<number>;
}

// Small enough to hold no lock and no snapshot for long.
const BATCH = 1_000;

export function addPrune(program: Command, cli: Cli): Command {
  return program
    .command('prune')
    .summary('delete what is finished and old')
    .description(
      'Deletes finished events and inbox rows that are old enough, in batches. What can still be delivered is never touched. (Relays do it by themselves, every hour: see the option retention.)',
    )
    .option('--completed-older-than <duration>', 'completed events, e.g. 7d', duration)
    .option('--failed-older-than <duration>', 'dead letters, e.g. 90d', duration)
    .option('--inbox-older-than <duration>', 'what the inbox remembers, e.g. 30d', duration)
    .option('--dry-run', 'count, and change nothing')
    .addHelpText(
      'after',
      `
Examples:
  nestjs-outbox-relay prune --completed-older-than 7d --dry-run
  nestjs-outbox-relay prune --completed-older-than 7d --failed-older-than 90d --inbox-older-than 30d`,
    )
    .action(async (_, command: Command) => {
      const options = optionsOf(command) as PruneOptions;
      await cli.withDatabase(options, (database) => run(cli, options, database));
    });
}

async function run(cli: Cli, options: PruneOptions, database: Database): Promise<void> {
  const { screen } = cli;
  const wanted = kinds(options, database).filter(({ olderThanMs }) => olderThanMs !== undefined);
  if (wanted.length === 0)
    throw invalid(
      'what to prune? Give --completed-older-than, --failed-older-than or --inbox-older-than',
    );
  const signal = options.dryRun ? undefined : cli.untilStopped();
  const pruned: Record<string, number> = {};
  let interrupted = false;
  for (const { name, olderThanMs = Infinity, count: total, prune } of wanted) {
    const matching = await total(olderThanMs);
    pruned[name] = options.dryRun ? matching : 0;
    if (options.dryRun) continue;
    const progress = new Progress(screen, `prune ${name}`);
    try {
      for (let batch = BATCH; batch === BATCH && !interrupted;) {
        if (signal?.aborted) interrupted = true;
        else batch = await prune(olderThanMs, BATCH);
        if (!interrupted) pruned[name] += batch;
        progress.show(pruned[name] ?? 0, matching);
      }
    } finally {
      progress.end();
    }
  }
  if (options.json) screen.json({ dryRun: options.dryRun === true, pruned, interrupted });
  else {
    const text = Object.entries(pruned)
      .map(([name, number]) => `${count(number)} ${name}`)
      .join(', ');
    const verb = options.dryRun ? 'Would prune' : 'Pruned';
    screen.line(`${interrupted ? 'Stopped: pruned' : verb} ${text}.`);
  }
  if (interrupted) cli.exitCode = EXIT.interrupted;
}

function kinds(options: PruneOptions, { pool, names, store }: Database): Kind[] {
  const finished = (name: 'completed' | 'failed', olderThanMs: number | undefined): Kind => {
    const status = name === 'completed' ? 'COMPLETED' : 'FAILED';
    return {
      name,
      olderThanMs,
      count: (ms) =>
        counted(
          pool,
          `SELECT count(*) AS total FROM ${names.events}
           WHERE status = '${status}' AND processed_at < now() - $1::float8 * interval '1 millisecond'`,
          ms,
        ),
      prune: (ms, limit) => store.prune({ status, olderThanMs: ms, limit }),
    };
  };
  const inbox = new InboxTable(pool, names);
  return [
    finished('completed', options.completedOlderThan),
    finished('failed', options.failedOlderThan),
    {
      name: 'inbox',
      olderThanMs: options.inboxOlderThan,
      count: (ms) =>
        counted(
          pool,
          `SELECT count(*) AS total FROM ${names.qualified('inbox')} AS handled
           WHERE handled.handled_at < now() - $1::float8 * interval '1 millisecond'
             AND NOT EXISTS (SELECT FROM ${names.events} AS event
                             WHERE event.id = handled.event_id AND event.status <> 'COMPLETED')`,
          ms,
        ),
      prune: (ms, limit) => inbox.prune(ms, limit),
    },
  ];
}

async function counted(pool: Database['pool'], text: string, ms: number): Promise<number> {
  const { rows } = await ask(pool, { text, values: [ms], types: AS_TEXT });
  return Number((rows[0] as { total: string }).total);
}
