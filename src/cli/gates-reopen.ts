import type { Command } from 'commander';
import { keyOf, versionOf } from '../bootstrap/gate.js';
import { optionsOf, type Cli, type GlobalOptions } from './cli.js';
import { EXIT } from './exit-code.js';
import { count } from './units.js';
import { visible } from '../event/visible.js';

interface ReopenOptions extends GlobalOptions {
  readonly version?: string;
  readonly dryRun?: boolean;
}

export function addGatesReopen(gates: Command, cli: Cli): Command {
  return gates
    .command('reopen')
    .summary('open a closed gate at once')
    .description(
      `Opens a closed gate at once and counts its failures from the start. Exit code ${EXIT.notRight}: there was nothing to open.`,
    )
    .argument('<key>', 'the key of the gate')
    .option('--version <version>', 'only this version (default: all of them)')
    .option('--dry-run', 'say what would be opened, and change nothing')
    .addHelpText(
      'after',
      `
Examples:
  nestjs-outbox-relay gates reopen records:tenant-7
  nestjs-outbox-relay gates reopen records:tenant-7 --version 2 --dry-run`,
    )
    .action(async (given: string, _, command: Command) => {
      const options = optionsOf(command) as ReopenOptions;
      const key = keyOf(given);
      const version = options.version === undefined ? undefined : versionOf(options.version);
      const reopened = await cli.withDatabase(options, async ({ store: { sentinels } }) => {
        if (!options.dryRun) return sentinels.reopen(key, version);
        const failing = await sentinels.list({ key, failing: true, limit: 1_000 });
        return failing.filter((gate) => version === undefined || gate.version === version).length;
      });
      const gatesText = `${count(reopened)} ${reopened === 1 ? 'version' : 'versions'} of ${visible(key)}`;
      if (options.json)
        cli.screen.json(options.dryRun ? { dryRun: true, matching: reopened } : { reopened });
      else if (reopened === 0)
        cli.screen.note(`no gate ${visible(key)} has failures: see gates list --failing`);
      else cli.screen.line(`${options.dryRun ? 'Would reopen' : 'Reopened'} ${gatesText}.`);
      if (reopened === 0) cli.exitCode = EXIT.notRight;
    });
}
