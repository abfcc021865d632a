import type { Command } from 'commander';
import { optionsOf, type Cli } from './cli.js';
import { addFilter } from './dead-letter-options.js';
import { change, type ChangeOptions } from './dead-letters-change.js';
import { rate } from './units.js';
import { wakeRelays } from './wake-relays.js';

interface RedriveOptions extends ChangeOptions {
  readonly perSecond: number;
}

export function addDeadLettersRedrive(deadLetters: Command, cli: Cli): Command {
  return addFilter(deadLetters.command('redrive'))
    .summary('give them a second life')
    .description(
      'Makes dead letters due again, with all their attempts before them. Listeners that had succeeded are not called again. Relays are woken.',
    )
    .argument('[id...]', 'ids of events')
    .option('--all', 'every dead letter')
    .option('--per-second <n>', 'how many become due each second', rate, 100)
    .option('--dry-run', 'count and show them, and change nothing')
    .option('--yes', 'do not ask')
    .addHelpText(
      'after',
      `
Examples:
  nestjs-outbox-relay dead-letters redrive 7a0e1c5e-0000-4000-8000-000000000001
  nestjs-outbox-relay dead-letters redrive --type quote_request.created --dry-run
  nestjs-outbox-relay dead-letters redrive --matching timeout --per-second 20 --yes`,
    )
    .action(async (ids: string[], _, command: Command) => {
      const options = optionsOf(command) as RedriveOptions;
      const { perSecond } = options;
      await change(
        cli,
        {
          verb: 'redrive',
          done: 'redriven',
          run: (letters, filter, batches) => letters.redrive(filter, { perSecond, ...batches }),
          afterwards: wakeRelays,
        },
        ids,
        options,
      );
    });
}
