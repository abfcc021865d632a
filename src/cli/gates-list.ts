import type { Command } from 'commander';
import type { GateState } from '../store/sentinel-store.js';
import { optionsOf, type Cli, type GlobalOptions } from './cli.js';
import { count, whole } from './units.js';

interface ListOptions extends GlobalOptions {
  readonly key?: string;
  readonly failing?: boolean;
  readonly limit: number;
}

export function addGatesList(gates: Command, cli: Cli): Command {
  return gates
    .command('list')
    .summary('list them, the failing ones first')
    .description('Lists gates: those that failed last come first.')
    .option('--failing', 'only those whose last run has failed')
    .option('--key <key>', 'only of this key')
    .option('--limit <n>', 'how many', whole(1, 1_000), 100)
    .addHelpText(
      'after',
      `
Examples:
  nestjs-outbox-relay gates list --failing
  nestjs-outbox-relay gates list --key records:tenant-7 --json`,
    )
    .action(async (_, command: Command) => {
      const { json, ...options } = optionsOf(command) as ListOptions;
      const { key, failing, limit } = options;
      const gatesFound = await cli.withDatabase({ json, ...options }, ({ store }) =>
        store.sentinels.list({ key, failing, limit }),
      );
      if (json) cli.screen.json(gatesFound);
      else if (gatesFound.length === 0) cli.screen.line('No gates.');
      else show(cli, gatesFound);
    });
}

function show({ screen }: Cli, gates: readonly GateState[]): void {
  screen.table<GateState>(
    [
      { title: 'KEY', of: ({ key }) => key },
      { title: 'VERSION', of: ({ version }) => version },
      { title: 'STATE', of: stateOf },
      { title: 'FAILURES', of: ({ failures }) => count(failures), right: true },
      { title: 'LAST ERROR', of: ({ lastError }) => (lastError ?? '').slice(0, 200) },
    ],
    gates,
  );
}

function stateOf({ running, closed, closedUntil, failures, stampedAt }: GateState): string {
  if (running) return 'running';
  if (closed) return `closed until ${closedUntil?.toISOString().slice(0, 16) ?? '?'}Z`;
  if (failures > 0) return 'failing';
  return stampedAt === null ? 'open' : 'stamped';
}
