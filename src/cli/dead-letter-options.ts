import { Option, type Command } from 'commander';
import { isEventId } from '../event/event-id.js';
import { invalid } from '../event/outbox-error.js';
import type { DeadLetterFilter } from '../store/outbox-store.js';
import type { GlobalOptions } from './cli.js';
import { moment } from './units.js';

export interface FilterOptions extends GlobalOptions {
  readonly type?: string;
  readonly matching?: string;
  readonly failedAfter?: Date;
  readonly failedBefore?: Date;
  readonly all?: boolean;
}

export function addFilter(command: Command): Command {
  return command
    .addOption(new Option('--type <event-type>', 'only of this event type'))
    .option('--matching <text>', 'only with this text in the event type or the last error')
    .option('--failed-after <time>', 'only set aside since then: a time, or e.g. 2h ago', moment)
    .option('--failed-before <time>', 'only set aside before then', moment);
}

/** Only the fields that are given: one that is present and undefined might be taken for "all". */
export function filterOf(
  { type, matching, failedAfter, failedBefore }: FilterOptions,
  ids: readonly string[] = [],
): DeadLetterFilter {
  return {
    ...(ids.length > 0 && { ids: ids.map(assertId) }),
    ...(type !== undefined && { eventType: type }),
    ...(matching !== undefined && { matching }),
    ...(failedAfter !== undefined && { failedAfter }),
    ...(failedBefore !== undefined && { failedBefore }),
  };
}

/** For what changes something: "all" has to be said. */
export function chosen(
  verb: string,
  options: FilterOptions,
  ids: readonly string[],
): DeadLetterFilter {
  const filter = filterOf(options, ids);
  const narrow = Object.keys(filter).length > 0;
  if (narrow && options.all)
    throw invalid(`--all and a choice exclude each other: leave --all to ${verb} what was chosen`);
  if (!narrow && !options.all)
    throw invalid(
      `which dead letters to ${verb}? Give ids, --type, --matching, --failed-before, or --all`,
    );
  return filter;
}

export function assertId(id: string): string {
  if (isEventId(id)) return id;
  throw invalid(`an event id is a UUID, got ${JSON.stringify(id)}: see dead-letters list`);
}
