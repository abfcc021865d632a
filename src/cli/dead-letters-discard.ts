import type { Command } from 'commander';
import { optionsOf, type Cli } from './cli.js';
import { addFilter } from './dead-letter-options.js';
import { change, type ChangeOptions } from './dead-letters-change.js';

export function addDeadLettersDiscard(deadLetters: Command, cli: Cli): Command {
  return addFilter(deadLetters.command('discard'))
    .summary('delete them for good')
    .description('Deletes dead letters for good.')
    .argument('[id...]', 'ids of events')
    .option('--all', 'every dead letter')
    .option('--dry-run', 'count and show them, and change nothing')
    .option('--yes', 'do not ask')
    .addHelpText(
      'after',
      `
Examples:
  nestjs-outbox-relay dead-letters discard 7a0e1c5e-0000-4000-8000-000000000001
  nestjs-outbox-relay dead-letters discard --type test.event --dry-run
  nestjs-outbox-relay dead-letters discard --failed-before 60d --yes`,
    )
    .action(async (ids: string[], _, command: Command) => {
      await change(
        cli,
        {
          verb: 'discard',
          done: 'discarded',
          run: (letters, filter, batches) => letters.discard(filter, batches),
        },
        ids,
        optionsOf(command) as ChangeOptions,
      );
    });
}
