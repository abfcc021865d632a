import type { Command } from 'commander';
import { ALIVE_WITHIN_MS } from '../relay/heartbeat.js';
import type { RelayState } from '../store/activity-store.js';
import type { OutboxStats } from '../store/outbox-store.js';
import type { SentinelStats } from '../store/sentinel-store.js';
import { optionsOf, type Cli, type GlobalOptions } from './cli.js';
import { EXIT } from './exit-code.js';
import { ago, count, duration, whole } from './units.js';
import { visible } from '../event/visible.js';

interface StatusOptions extends GlobalOptions {
  readonly maxAge?: number;
  readonly maxDue?: number;
  readonly maxFailed?: number;
}

interface Status extends OutboxStats {
  readonly gates: SentinelStats;
  /** Processes that relay, or did within a day. */
  readonly relays: readonly (RelayState & { readonly alive: boolean })[];
  /** What is above a limit that was given. */
  readonly exceeded: readonly string[];
}

const MANY = 1_000_000_000;

export function addStatus(program: Command, cli: Cli): Command {
  return program
    .command('status')
    .summary('how many events wait, work, are done, are dead')
    .description(
      `Counts, the age of the oldest due event, relays and gates. With a limit, exit code ${EXIT.notRight} says that it is exceeded.`,
    )
    .option('--max-age <duration>', 'limit for how long an event may be due, e.g. 5m', duration)
    .option('--max-due <n>', 'limit for how many events may be due', whole(0, MANY))
    .option('--max-failed <n>', 'limit for how many dead letters there may be', whole(0, MANY))
    .addHelpText(
      'after',
      `
Examples:
  nestjs-outbox-relay status
  nestjs-outbox-relay status --json
  nestjs-outbox-relay status --max-age 5m --max-failed 0 || page-somebody`,
    )
    .action(async (_, command: Command) => {
      const options = optionsOf(command) as StatusOptions;
      const status = await cli.withDatabase(options, async ({ store }): Promise<Status> => {
        const stats = await store.stats();
        const gates = await store.sentinels.stats();
        const relays = (await store.activity.relays()).map((relay) =>
          Object.assign(
            { alive: relay.stoppedAt === null && relay.silentMs <= ALIVE_WITHIN_MS },
            relay,
          ),
        );
        return { ...stats, gates, relays, exceeded: exceeded(stats, options) };
      });
      if (options.json) cli.screen.json(status);
      else show(cli, status);
      if (status.exceeded.length > 0) cli.exitCode = EXIT.notRight;
    });
}

function exceeded(stats: OutboxStats, limits: StatusOptions): string[] {
  const { maxAge, maxDue, maxFailed } = limits;
  const found: string[] = [];
  if (maxAge !== undefined && (stats.oldestDueAgeMs ?? 0) > maxAge)
    found.push(
      `the oldest due event is ${ago(stats.oldestDueAgeMs ?? 0)} late (limit ${ago(maxAge)})`,
    );
  if (maxDue !== undefined && stats.due > maxDue)
    found.push(`due events: ${count(stats.due)} (limit ${count(maxDue)})`);
  if (maxFailed !== undefined && stats.failed > maxFailed)
    found.push(`dead letters: ${count(stats.failed)} (limit ${count(maxFailed)})`);
  return found;
}

function show({ screen }: Cli, status: Status): void {
  const { oldestDueAgeMs, completedEstimate } = status;
  const lines: [string, string, string][] = [
    [
      'due',
      count(status.due),
      oldestDueAgeMs === null ? '' : `the oldest for ${ago(oldestDueAgeMs)}`,
    ],
    ['scheduled', count(status.scheduled), ''],
    ['processing', count(status.processing), ''],
    ['failed', count(status.failed), status.failed > 0 ? 'see: dead-letters list' : ''],
    ['completed', completedEstimate === null ? '?' : `~${count(completedEstimate)}`, ''],
    ...Object.entries(status.unheard).map(([type, total]): [string, string, string] => [
      'unheard',
      count(total),
      `nobody listens to ${visible(type)}`,
    ]),
    [
      'gates failing',
      count(status.gates.failing),
      status.gates.closed > 0 ? `${count(status.gates.closed)} closed` : '',
    ],
  ];
  const alive = status.relays.filter((relay) => relay.alive);
  lines.push([
    'relays',
    count(alive.length),
    alive.map(({ name, version }) => `${name} (${version})`).join(', '),
  ]);
  screen.table(
    [
      { title: 'STATE', of: ([state]) => state },
      { title: 'NUMBER', of: ([, number]) => number, right: true },
      { title: '', of: ([, , remark]) => remark },
    ],
    lines,
  );
  for (const text of status.exceeded) screen.note(screen.paint('red', `not right: ${text}`));
}
