import { CommanderError, type Command } from 'commander';
import { readFile } from 'node:fs/promises';
import { errorText } from '../event/error-text.js';
import { OutboxError } from '../event/outbox-error.js';
import { Cli } from './cli.js';
import { EXIT } from './exit-code.js';
import { createProgram } from './program.js';
import { redactor } from './redact.js';
import { Screen } from './screen.js';
import { visibleLines } from '../event/visible.js';

const MANIFEST = new URL('../../package.json', import.meta.url);

/**
 * Runs the command line.
 * @param args without the interpreter and the file
 * @returns the exit code
 */
export async function run(
  args: readonly string[],
  { stdin, stdout, stderr, env }: Pick<NodeJS.Process, 'stdin' | 'stdout' | 'stderr' | 'env'>,
): Promise<number> {
  quietWhenNobodyReads(stdout);
  const screen = new Screen(stdin, stdout, stderr, env);
  const cli = new Cli(screen, env);
  const redact = redactor([env['DATABASE_URL'], ...args], env);
  try {
    const { version } = JSON.parse(await readFile(MANIFEST, 'utf8')) as { version: string };
    const program = createProgram(cli, version, redact);
    program.hook('preAction', (_, action: Command) => {
      // --no-color, wherever it stands.
      for (let one: Command | null = action; one !== null; one = one.parent)
        if (one.opts()['color'] === false) screen.withoutColours();
    });
    await program.parseAsync(args, { from: 'user' });
    return cli.exitCode;
  } catch (error) {
    // Commander has said it already: the help, the version, or what is wrong.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.fine : EXIT.usage;
    const text = error instanceof OutboxError ? error.message : errorText(error);
    screen.note(visibleLines(redact(text)));
    const wrongValue = error instanceof OutboxError && error.code === 'INVALID_ARGUMENT';
    return wrongValue ? EXIT.usage : EXIT.failed;
  }
}

/** `… | head` has seen enough: no reason for an error. */
function quietWhenNobodyReads(stdout: NodeJS.WriteStream): void {
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(EXIT.fine);
    throw error;
  });
}
