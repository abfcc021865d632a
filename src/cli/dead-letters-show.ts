import type { Command } from 'commander';
import type { StoredEvent } from '../store/outbox-store.js';
import { optionsOf, type Cli, type GlobalOptions } from './cli.js';
import { assertId } from './dead-letter-options.js';
import { EXIT } from './exit-code.js';
import { visible, visibleLines } from '../event/visible.js';
import { visibleJson } from './visible-json.js';

export function addDeadLettersShow(deadLetters: Command, cli: Cli): Command {
  return deadLetters
    .command('show')
    .summary('show all of one event')
    .description(
      `Shows one event with its payload, its last error and its earlier lives, in whatever state it is. Exit code ${EXIT.notRight}: there is none.`,
    )
    .argument('<id>', 'the id of the event')
    .addHelpText(
      'after',
      `
Examples:
  nestjs-outbox-relay dead-letters show 7a0e1c5e-0000-4000-8000-000000000001
  nestjs-outbox-relay dead-letters show 7a0e1c5e-0000-4000-8000-000000000001 --json`,
    )
    .action(async (id: string, _, command: Command) => {
      const options = optionsOf(command) as GlobalOptions;
      assertId(id);
      const event = await cli.withDatabase(options, ({ store }) => store.find(id));
      if (event === null) {
        cli.exitCode = EXIT.notRight;
        if (options.json) cli.screen.json(null);
        cli.screen.note(`there is no event ${id}: was it pruned or discarded?`);
      } else if (options.json) cli.screen.json(event);
      else show(cli, event);
    });
}

function show({ screen }: Cli, event: StoredEvent): void {
  const time = (moment: Date | null): string => moment?.toISOString() ?? '-';
  const title = (text: string): string => screen.paint('bold', text.padEnd(16));
  screen.line(`${title('id')}${event.id}`);
  screen.line(`${title('event type')}${visible(event.eventType)}`);
  screen.line(`${title('status')}${event.status}`);
  screen.line(`${title('attempts')}${event.retryCount}`);
  screen.line(`${title('created')}${time(event.createdAt)}`);
  screen.line(`${title('scheduled')}${time(event.scheduledAt)}`);
  screen.line(`${title('finished')}${time(event.processedAt)}`);
  screen.line(`${title('done by')}${visible(event.acknowledgedBy.join(', ')) || '-'}`);
  screen.line(`${title('earlier lives')}${event.previousLives.length}`);
  if (event.lastError !== null)
    // Set off from the rest: a line in it is not to pass for one of ours.
    screen.line(
      `\n${screen.paint('bold', 'last error')}\n${visibleLines(event.lastError).replaceAll(/^/gm, '  ')}`,
    );
  screen.line(`\n${screen.paint('bold', 'payload')}\n${visibleJson(event.payload, 2)}`);
  screen.line(`\n${screen.paint('bold', 'metadata')}\n${visibleJson(event.metadata, 2)}`);
  if (event.previousLives.length > 0)
    screen.line(
      `\n${screen.paint('bold', 'earlier lives')}\n${visibleJson(event.previousLives, 2)}`,
    );
}
