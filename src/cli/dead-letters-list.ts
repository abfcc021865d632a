import type { Command } from 'commander';
import { OutboxDeadLetters } from '../dead-letter/dead-letters.js';
import type { DeadLetter, DeadLetterPage } from '../store/outbox-store.js';
import { optionsOf, type Cli } from './cli.js';
import { addFilter, assertId, filterOf, type FilterOptions } from './dead-letter-options.js';
import type { Screen } from './screen.js';
import { count, whole } from './units.js';

interface ListOptions extends FilterOptions {
  readonly id?: readonly string[];
  readonly limit: number;
  readonly after?: string;
}

const LARGEST_PAGE = 500;

export function addDeadLettersList(deadLetters: Command, cli: Cli): Command {
  return addFilter(deadLetters.command('list'))
    .summary('list them, newest first')
    .description('Lists dead letters, newest first.')
    .option('--id <id...>', 'only these events')
    .option('--limit <n>', 'how many', whole(1, LARGEST_PAGE), 50)
    .option('--after <next>', 'the page after the one that ended with "next"')
    .option('--all', 'every page')
    .addHelpText(
      'after',
      `
Examples:
  nestjs-outbox-relay dead-letters list --type quote_request.created --failed-after 2d
  nestjs-outbox-relay dead-letters list --matching timeout --json
  nestjs-outbox-relay dead-letters list --all --json > dead-letters.json`,
    )
    .action(async (_, command: Command) => {
      const options = optionsOf(command) as ListOptions;
      await cli.withDatabase(options, async ({ store }) => {
        const page = await read(new OutboxDeadLetters(store, () => {}), options);
        if (options.json) cli.screen.json(page);
        else showDeadLetters(cli.screen, page);
      });
    });
}

async function read(deadLetters: OutboxDeadLetters, options: ListOptions): Promise<DeadLetterPage> {
  const filter = filterOf(options, options.id?.map(assertId));
  const limit = options.all ? LARGEST_PAGE : options.limit;
  let page = await deadLetters.list({ ...filter, limit, after: options.after });
  const items = [...page.items];
  while (options.all && page.next !== null) {
    page = await deadLetters.list({ ...filter, limit, after: page.next });
    items.push(...page.items);
  }
  return { items, next: page.next };
}

export function showDeadLetters(screen: Screen, { items, next }: DeadLetterPage): void {
  if (items.length === 0) {
    screen.line('No dead letters.');
    return;
  }
  screen.table<DeadLetter>(
    [
      { title: 'ID', of: ({ id }) => id },
      { title: 'EVENT TYPE', of: ({ eventType }) => eventType },
      { title: 'FAILED AT', of: ({ failedAt }) => `${failedAt.toISOString().slice(0, 19)}Z` },
      { title: 'ATTEMPTS', of: ({ retryCount }) => count(retryCount), right: true },
      { title: 'LAST ERROR', of: ({ lastError }) => (lastError ?? '').slice(0, 200) },
    ],
    items,
  );
  if (next !== null) screen.note(`There are more: --after ${next}`);
}
