import { describe, expect, it } from '@jest/globals';
import type { Command } from 'commander';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Cli } from '../../src/cli/cli.js';
import { EXIT } from '../../src/cli/exit-code.js';
import { createProgram } from '../../src/cli/program.js';
import { Screen } from '../../src/cli/screen.js';
import { CHECKS } from '../../src/doctor/checks.js';
import { GROUPS } from '../../src/doctor/finding.js';
import { migrate } from '../../src/schema/migrate.js';
import { sqlNames } from '../../src/store/postgres/sql-names.js';
import { compileSnippets } from '../docs/snippet-project.js';
import { createDatabase } from '../support/database.js';
import { cli } from './run-cli.js';

const program = createProgram(
  new Cli(new Screen(process.stdin, process.stdout, process.stderr, {}), {}),
  '0.0.0',
  (text) => text,
);

/** Commands that do something, by their whole name. */
function leaves(command: Command, names: readonly string[] = []): [string, Command][] {
  if (command.commands.length === 0) return [[names.join(' '), command]];
  return command.commands.flatMap((one) => leaves(one, [...names, one.name()]));
}

describe.each(['docs/cli.md', 'docs/cli.ko.md'])('%s', (file) => {
  const text = readFileSync(file, 'utf8');
  const sections = new Map(
    text.split(/^## /m).map((section) => [section.slice(0, section.indexOf('\n')), section]),
  );
  const [, connection = ''] = [...sections.values()];
  const rowsOf = (section: string): string[] =>
    [...section.matchAll(/^\| `(-.*?)`/gm)].map(([, name]) => name!);

  it.each(leaves(program))('tells every option of %s where the command is', (name, command) => {
    const [group = ''] = name.split(' ');
    const section = sections.get(group) ?? '';
    for (const { flags } of command.options) {
      if (rowsOf(connection).some((row) => row.startsWith(flags.split(' ')[0]!))) continue;
      expect(section).toContain(`\`${flags}\``);
    }
  });

  it('tells no option that is not there', () => {
    for (const [group, section] of sections) {
      const known = leaves(program)
        .filter(([name]) => name.split(' ')[0] === group)
        .flatMap(([, { options }]) => options.map(({ flags }) => flags));
      if (known.length === 0) continue;
      for (const row of rowsOf(section)) expect(known).toContain(row);
    }
  });

  it('tells the options that every command takes', () => {
    expect(rowsOf(connection)).toEqual([
      '--connection <url>',
      '--schema <name>',
      '--table <name>',
      '--json',
      '--no-color',
      '-h, --help',
    ]);
  });

  it('tells every exit code', () => {
    const codes = [...text.matchAll(/^\| (\d+) /gm)].map(([, code]) => Number(code));
    expect(codes).toEqual(Object.values(EXIT));
  });

  it('shows commands that are understood', async () => {
    await using database = await createDatabase();
    await migrate(database.pool, sqlNames());
    const commands = [...text.matchAll(/^npx nestjs-outbox-relay (.*)$/gm)].map(([, line]) =>
      line!.replace(/ >.*/, ''),
    );
    expect(commands.length).toBeGreaterThan(9);
    for (const line of commands) {
      const { code, stderr } = await cli(line.split(' '), database.connectionString);
      expect({ line, code, stderr }).toEqual({ line, code: 0, stderr: '' });
    }
  });
});

describe.each(['docs/doctor.md', 'docs/doctor.ko.md'])('%s', (file) => {
  const text = readFileSync(file, 'utf8');
  const rows = [...text.matchAll(/^\| `([a-z-]+)`( ⁺)? +\| (.*?) +\| (.*?) +\| (.*?) +\|$/gm)];

  it('lists every check, in the order they are made, with why and what mends it', () => {
    expect(rows.map(([, name]) => name)).toEqual(CHECKS.map(({ name }) => name));
    for (const [, , , looksFor, why, fix] of rows)
      for (const cell of [looksFor, why, fix]) expect(cell!.length).toBeGreaterThan(2);
  });

  it('shows code that compiles', async () => {
    await compileSnippets(file, path.basename(file, '.md'));
  });

  it('marks those that need no PostgreSQL connection', () => {
    const marked = rows.filter(([, , mark]) => mark !== undefined).map(([, name]) => name);
    const withoutConnection = CHECKS.filter(
      ({ needs }) => needs === 'store' || needs === 'nothing',
    );
    expect(marked).toEqual(withoutConnection.map(({ name }) => name));
  });

  it('has a section for each group', () => {
    expect([...text.matchAll(/^\| -+ \|/gm)]).toHaveLength(GROUPS.length);
  });
});
