import type { Command } from 'commander';
import { invalid } from '../event/outbox-error.js';
import { migrate } from '../schema/migrate.js';
import { readMigrations } from '../schema/migration-files.js';
import { outboxSql } from '../schema/migrate-outbox.js';
import { AS_TEXT, ask } from '../store/postgres/pg-pool.js';
import {
  assertVersion,
  readSchemaState,
  SCHEMA_VERSION,
} from '../store/postgres/schema-version.js';
import { optionsOf, type Cli, type Database, type GlobalOptions } from './cli.js';

interface MigrateOptions extends GlobalOptions {
  readonly print?: boolean;
  readonly dryRun?: boolean;
  readonly createSchema?: boolean;
}

export function addMigrate(program: Command, cli: Cli): Command {
  return program
    .command('migrate')
    .summary('create or upgrade the outbox')
    .description(
      'Creates or upgrades the outbox in a PostgreSQL database, in one transaction. Safe to repeat, and from several processes at once.',
    )
    .option('--print', 'print the SQL instead of running it (needs no database)')
    .option('--dry-run', 'say which files would be applied, and change nothing')
    .option('--create-schema', 'create the schema if it does not exist')
    .addHelpText(
      'after',
      `
Examples:
  nestjs-outbox-relay migrate
  nestjs-outbox-relay migrate --dry-run --json
  nestjs-outbox-relay migrate --schema billing --create-schema
  nestjs-outbox-relay migrate --print > outbox.sql`,
    )
    .action(async (_, command: Command) => {
      const options = optionsOf(command) as MigrateOptions;
      const { schema, table } = options;
      if (options.print) cli.screen.write(await outboxSql({ schema, table }));
      else
        await cli.withDatabase(options, (database) => run(cli, options, database), {
          check: false,
        });
    });
}

async function run(
  cli: Cli,
  { json, dryRun, createSchema = false }: MigrateOptions,
  { pool, names }: Database,
): Promise<void> {
  if (!createSchema) await assertSchemaExists(pool, names.schema);
  if (dryRun) {
    const state = await readSchemaState(pool, names);
    const from = state.version;
    if (from >= SCHEMA_VERSION) assertVersion(state, names);
    const pending = (await readMigrations(names))
      .filter(({ version }) => version > from)
      .map(({ file }) => file);
    if (json) cli.screen.json({ from, to: Math.max(from, SCHEMA_VERSION), pending });
    else if (pending.length === 0) cli.screen.line(`Nothing to do: version ${from}`);
    else
      cli.screen.line(
        `Would apply ${pending.join(', ')}: from version ${from} to ${SCHEMA_VERSION}`,
      );
    return;
  }
  const result = await migrate(pool, names);
  if (json) cli.screen.json(result);
  else if (result.applied.length === 0) cli.screen.line(`Nothing to do: version ${result.to}`);
  else cli.screen.line(`Applied ${result.applied.join(', ')}: now at version ${result.to}`);
}

/** A slip in its name would make a second outbox that nobody reads. */
async function assertSchemaExists(pool: Database['pool'], schema: string): Promise<void> {
  const { rows } = await ask(pool, {
    text: 'SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1',
    values: [schema],
    types: AS_TEXT,
  });
  if (rows.length > 0) return;
  throw invalid(
    `--schema "${schema}" does not exist in this database: correct the name, or add --create-schema`,
  );
}
