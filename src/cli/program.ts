import { Command } from 'commander';
import type { Cli } from './cli.js';
import { addDeadLettersDiscard } from './dead-letters-discard.js';
import { addDeadLettersList } from './dead-letters-list.js';
import { addDeadLettersRedrive } from './dead-letters-redrive.js';
import { addDeadLettersShow } from './dead-letters-show.js';
import { addDoctor } from './doctor.js';
import { addGatesList } from './gates-list.js';
import { addGatesReopen } from './gates-reopen.js';
import { addMigrate } from './migrate.js';
import { addPrune } from './prune.js';
import { addStatus } from './status.js';
import { visibleLines } from '../event/visible.js';

const EXIT_CODES = `
Exit codes:
  0    done, or looked and all is well
  1    failed: the database cannot be reached, refuses, or is of another version
  2    wrong usage
  3    looked, and something is not right
  130  stopped with Ctrl+C

The password of the connection is never printed. On a command line it is seen by everybody on the machine: prefer
DATABASE_URL.`;

/** The whole command line. */
export function createProgram(
  cli: Cli,
  version: string,
  redact: (text: string) => string,
): Command {
  const program = new Command('nestjs-outbox-relay')
    .description('Looks after the transactional outbox in a PostgreSQL database.')
    .version(version, '-V, --version', 'the version of the package')
    // `gates reopen --version` is another one.
    .enablePositionalOptions()
    .addHelpText('after', EXIT_CODES);
  withGlobalOptions(program);

  const first = [addMigrate(program, cli), addStatus(program, cli)];
  const deadLetters = program
    .command('dead-letters')
    .summary('list, show, redrive or discard dead letters')
    .description('Events that were set aside after their last attempt.');
  const gates = program
    .command('gates')
    .summary('list or reopen bootstrap gates')
    .description('What keeps the "done" mark of bootstrap work from falling.');
  const leaves = [
    ...first,
    addDeadLettersList(deadLetters, cli),
    addDeadLettersShow(deadLetters, cli),
    addDeadLettersRedrive(deadLetters, cli),
    addDeadLettersDiscard(deadLetters, cli),
    addGatesList(gates, cli),
    addGatesReopen(gates, cli),
    addPrune(program, cli),
    addDoctor(program, cli),
  ];
  for (const leaf of leaves) withGlobalOptions(leaf);
  for (const command of [program, deadLetters, gates, ...leaves]) {
    command
      .exitOverride()
      .allowExcessArguments(false)
      .helpCommand(false)
      .configureHelp({ sortSubcommands: false })
      .configureOutput({
        writeOut: (text) => cli.screen.write(text),
        writeErr: (text) => cli.screen.note(visibleLines(redact(text.trimEnd()))),
        getOutHelpWidth: () => 100,
        getErrHelpWidth: () => 100,
      })
      .showHelpAfterError(`Try: ${nameOf(command)} --help`);
  }
  return program;
}

function withGlobalOptions(command: Command): void {
  command
    .option('--connection <url>', 'the database (default: the environment variable DATABASE_URL)')
    .option('--schema <name>', 'its schema (default: public)')
    .option('--table <name>', 'its table (default: outbox_events)')
    .option('--json', 'JSON for scripts in place of text for people')
    .option('--no-color', 'no colours, also not on a terminal')
    .helpOption('-h, --help', 'this text');
}

function nameOf(command: Command): string {
  return command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`;
}
