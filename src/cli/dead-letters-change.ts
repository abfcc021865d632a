import { invalid } from '../event/outbox-error.js';
import { OutboxDeadLetters, type BatchOptions } from '../dead-letter/dead-letters.js';
import type { DeadLetterFilter } from '../store/outbox-store.js';
import type { Cli, Database } from './cli.js';
import { chosen, type FilterOptions } from './dead-letter-options.js';
import { showDeadLetters } from './dead-letters-list.js';
import { EXIT } from './exit-code.js';
import { Progress } from './progress.js';
import { count } from './units.js';

export interface ChangeOptions extends FilterOptions {
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

export interface Change {
  /** `redrive` */
  readonly verb: string;
  /** `redriven`: also the field of the JSON. */
  readonly done: string;
  readonly run: (
    deadLetters: OutboxDeadLetters,
    filter: DeadLetterFilter,
    batches: BatchOptions,
  ) => Promise<number>;
  /** After something was changed. */
  readonly afterwards?: (database: Database) => Promise<void>;
}

// So many are shown before they are changed.
const SHOWN = 5;

/** What redrive and discard have in common: choose, look or ask, work in batches, say how far it came. */
export async function change(
  cli: Cli,
  { verb, done, run, afterwards }: Change,
  ids: readonly string[],
  options: ChangeOptions,
): Promise<void> {
  const { screen } = cli;
  const filter = chosen(verb, options, ids);
  await cli.withDatabase(options, async (database: Database) => {
    const deadLetters = new OutboxDeadLetters(database.store, () => {});
    const matching = await deadLetters.count(filter);
    const missing = new Set(ids.map((id) => id.toLowerCase())).size - matching;
    if (options.dryRun) {
      const first = await deadLetters.list({ ...filter, limit: options.json ? 50 : SHOWN });
      if (options.json) screen.json({ dryRun: true, matching, first: first.items });
      else {
        screen.line(`Would ${verb} ${deadLettersText(matching)}.`);
        if (matching > 0) showDeadLetters(screen, { items: first.items, next: null });
        if (matching > SHOWN) screen.line(`… and ${count(matching - SHOWN)} more`);
      }
    } else {
      if (matching > 1 && !options.yes && !(await confirmed(cli, verb, matching))) return;
      const signal = cli.untilStopped();
      const progress = new Progress(screen, verb);
      let changed = 0;
      try {
        changed = await run(deadLetters, filter, {
          signal,
          onProgress: (soFar, total) => progress.show(soFar, total),
        });
      } finally {
        progress.end();
      }
      if (changed > 0) await afterwards?.(database);
      const interrupted = signal.aborted && changed < matching;
      if (options.json) screen.json({ [done]: changed, matching, interrupted });
      else if (interrupted)
        screen.line(`Stopped: ${done} ${count(changed)} of ${deadLettersText(matching)}.`);
      else screen.line(`${capital(done)} ${deadLettersText(changed)}.`);
      if (interrupted) cli.exitCode = EXIT.interrupted;
    }
    if (ids.length > 0 && missing > 0) {
      screen.note(
        `${missing} of the ids ${missing === 1 ? 'is' : 'are'} no dead letter (any more)`,
      );
      if (cli.exitCode === EXIT.fine) cli.exitCode = EXIT.notRight;
    }
  });
}

async function confirmed(cli: Cli, verb: string, matching: number): Promise<boolean> {
  const { screen } = cli;
  if (!screen.interactive)
    throw invalid(
      `this would ${verb} ${deadLettersText(matching)}: add --yes to do it, or --dry-run to look`,
    );
  if (await screen.confirm(`${capital(verb)} ${deadLettersText(matching)}?`)) return true;
  screen.note('Nothing was changed.');
  cli.exitCode = EXIT.interrupted;
  return false;
}

function deadLettersText(number: number): string {
  return `${count(number)} ${number === 1 ? 'dead letter' : 'dead letters'}`;
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
