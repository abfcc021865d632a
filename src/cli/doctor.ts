import type { Command } from 'commander';
import { examine } from '../doctor/doctor.js';
import { GROUPS, type CheckRun, type Examination, type Finding } from '../doctor/finding.js';
import { LONG_TRANSACTION_MS, PatientDatabase, several } from '../doctor/patient.js';
import { BOSS_SCHEMA } from '../relay/open-boss.js';
import { optionsOf, type Cli, type GlobalOptions } from './cli.js';
import { EXIT } from './exit-code.js';
import type { Colour, Screen } from './screen.js';
import { duration, schemaName } from './units.js';
import { visible } from '../event/visible.js';

interface DoctorOptions extends GlobalOptions {
  readonly strict?: boolean;
  readonly longTransaction: number;
  readonly bossSchema: string;
}

const COLOURS: Readonly<Record<Finding['level'], Colour>> = {
  error: 'red',
  warning: 'yellow',
  info: 'cyan',
};

export function addDoctor(program: Command, cli: Cli): Command {
  return program
    .command('doctor')
    .summary('look for what is wrong, and say how to mend it')
    .description(
      `Examines the outbox, its database and its relays. It only reads. Exit code ${EXIT.notRight}: there are errors.`,
    )
    .option('--strict', `exit code ${EXIT.notRight} for warnings too`)
    .option(
      '--long-transaction <duration>',
      'a transaction open for longer is told (default: 5m)',
      duration,
      LONG_TRANSACTION_MS,
    )
    .option(
      '--boss-schema <name>',
      'of the pg-boss that the relay ticks on',
      schemaName,
      BOSS_SCHEMA,
    )
    .addHelpText(
      'after',
      `
Examples:
  nestjs-outbox-relay doctor
  nestjs-outbox-relay doctor --strict --json`,
    )
    .action(async (_, command: Command) => {
      const options = optionsOf(command) as DoctorOptions;
      const examination = await cli.withDatabase(
        options,
        ({ pool, names, store }) =>
          examine({
            store,
            names,
            database: new PatientDatabase(pool, pool.options),
            listeners: undefined,
            completedMs: undefined,
            bossSchema: options.bossSchema,
            longTransactionMs: options.longTransaction,
          }),
        { check: false },
      );
      if (options.json) cli.screen.json(examination);
      else show(cli.screen, examination);
      const grave = (level: Finding['level']): boolean =>
        level === 'error' || (options.strict === true && level === 'warning');
      if (examination.findings.some(({ level }) => grave(level))) cli.exitCode = EXIT.notRight;
    });
}

function show(screen: Screen, { findings, checks }: Examination): void {
  for (const group of GROUPS) {
    const inGroup = checks.filter((check) => check.group === group);
    if (inGroup.length === 0) continue;
    screen.line(screen.paint('bold', group));
    for (const check of inGroup) showCheck(screen, check, findings);
  }
  const number = (level: Finding['level'], what: string): string =>
    several(findings.filter((finding) => finding.level === level).length, what);
  const blind = checks.filter(({ ran }) => !ran).length;
  screen.line(
    `\n${number('error', 'error')}, ${number('warning', 'warning')}, ${number('info', 'info')} in ` +
      `${several(checks.length - blind, 'check')}${blind === 0 ? '' : `; ${blind} could not look`}`,
  );
}

function showCheck(screen: Screen, check: CheckRun, findings: readonly Finding[]): void {
  const found = findings.filter((finding) => finding.check === check.check);
  if (!check.ran)
    screen.line(
      `  ${screen.paint('dim', `could not look  ${check.check}: ${visible(check.remark ?? '')}`)}`,
    );
  else if (found.length === 0)
    screen.line(
      `  ${screen.paint('green', 'ok')}  ${check.check}${check.remark === null ? '' : ` (${visible(check.remark)})`}`,
    );
  for (const { level, what, why, fix } of found) {
    screen.line(`  ${screen.paint(COLOURS[level], level)}  ${check.check}: ${visible(what)}`);
    screen.line(`      why: ${visible(why)}`);
    screen.line(`      fix: ${visible(fix)}`);
  }
}
