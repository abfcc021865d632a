#!/usr/bin/env node
import { parseArgs } from 'node:util';
import { errorText } from './event/error-text.js';
import { OutboxError } from './event/outbox-error.js';
import { migrateOutbox, outboxSql } from './migrate-outbox.js';

const USAGE = `Usage: nestjs-outbox-relay migrate [options]

Creates or upgrades the outbox in a PostgreSQL database. Safe to repeat, and from several processes at once.

  --connection <url>  default: the environment variable DATABASE_URL
  --schema <name>     default: public
  --table <name>      default: outbox_events
  --print             print the SQL instead of running it
  --help              this text
`;

async function main(): Promise<number> {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: {
      connection: { type: 'string' },
      schema: { type: 'string' },
      table: { type: 'string' },
      print: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  if (positionals.length !== 1 || positionals[0] !== 'migrate') {
    process.stderr.write(USAGE);
    return 2;
  }
  const { schema, table } = values;
  if (values.print) {
    process.stdout.write(await outboxSql({ schema, table }));
    return 0;
  }
  const database = values.connection ?? process.env['DATABASE_URL'];
  if (database === undefined || database === '') {
    process.stderr.write('No database: pass --connection postgres://… or set DATABASE_URL\n');
    return 2;
  }
  const { to, applied } = await migrateOutbox({ database, schema, table });
  process.stdout.write(
    applied.length === 0
      ? `Nothing to do: version ${to}\n`
      : `Applied ${applied.join(', ')}: now at version ${to}\n`,
  );
  return 0;
}

// Exit codes: 0 done, 1 failed, 2 wrong usage.
main().then(
  (code) => {
    process.exitCode = code;
  },
  (error: unknown) => {
    const wrongUsage =
      error instanceof TypeError &&
      'code' in error &&
      String(error.code).startsWith('ERR_PARSE_ARGS');
    const wrongValue = error instanceof OutboxError && error.code === 'INVALID_ARGUMENT';
    const text = error instanceof OutboxError ? error.message : errorText(error);
    process.stderr.write(`${text}\n${wrongUsage ? `\n${USAGE}` : ''}`);
    process.exitCode = wrongUsage || wrongValue ? 2 : 1;
  },
);
