import { expect, it } from '@jest/globals';
import { readFileSync, writeFileSync } from 'node:fs';
import { underDefaultNames } from '../../src/doctor/expected-names.js';
import { hashOf } from '../../src/doctor/checks/functions.js';
import { migrate } from '../../src/schema/migrate.js';
import { sqlNames } from '../../src/store/postgres/sql-names.js';
import { createDatabase, type TestDatabase } from '../support/database.js';

const FILE = 'src/doctor/expected-schema.ts';

it.each([18, 14] as const)(
  'what the doctor expects is what the migrations make (PostgreSQL %i)',
  async (major) => {
    await using database = await createDatabase(major);
    await migrate(database.pool, sqlNames());
    const truth = await sourceOf(database);
    if (process.env['UPDATE_SCHEMA'] === '1') writeFileSync(FILE, truth);
    // UPDATE_SCHEMA=1 npm test -- test/schema/schema
    expect(readFileSync(FILE, 'utf8')).toBe(truth);
  },
);

async function sourceOf(database: TestDatabase): Promise<string> {
  const tables = await database.query<{ name: string }>(
    `SELECT relname AS name FROM pg_class
     WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') ORDER BY relname`,
  );
  const indexes = await database.query<{ name: string; definition: string }>(
    `SELECT class.relname AS name, pg_get_indexdef(class.oid) AS definition
     FROM pg_index AS index JOIN pg_class AS class ON class.oid = index.indexrelid
     WHERE class.relnamespace = 'public'::regnamespace AND NOT index.indisunique ORDER BY class.relname`,
  );
  const constraints = await database.query<{ name: string; table: string; definition: string }>(
    `SELECT conname AS name, relname AS table, pg_get_constraintdef(constraints.oid) AS definition
     FROM pg_constraint AS constraints JOIN pg_class AS class ON class.oid = conrelid
     WHERE connamespace = 'public'::regnamespace AND contype <> 'n' ORDER BY conname`,
  );
  const functions = await database.query<{ signature: string; source: string }>(
    `SELECT format('%s(%s)', proname, pg_get_function_identity_arguments(oid)) AS signature, prosrc AS source
     FROM pg_proc WHERE pronamespace = 'public'::regnamespace ORDER BY 1`,
  );
  const names = sqlNames();
  return [
    '// Made by test/schema/schema-for-doctor.test.ts (UPDATE_SCHEMA=1) from what the migrations make. Not written by hand.',
    '',
    constant(
      'EXPECTED_TABLES',
      tables.map(({ name }) => name),
    ),
    constant(
      'EXPECTED_INDEXES',
      Object.fromEntries(indexes.map(({ name, definition }) => [name, definition])),
    ),
    constant(
      'EXPECTED_CONSTRAINTS',
      Object.fromEntries(
        constraints.map(({ name, table, definition }) => [name, { table, definition }]),
      ),
    ),
    '// The source of each, hashed.',
    constant(
      'EXPECTED_FUNCTIONS',
      Object.fromEntries(
        functions.map(({ signature, source }) => [
          signature,
          hashOf(underDefaultNames(source, names)),
        ]),
      ),
    ),
  ].join('\n');
}

function constant(name: string, value: unknown): string {
  const type = {
    EXPECTED_TABLES: 'readonly string[]',
    EXPECTED_INDEXES: 'Readonly<Record<string, string>>',
    EXPECTED_CONSTRAINTS:
      'Readonly<Record<string, { readonly table: string; readonly definition: string }>>',
    EXPECTED_FUNCTIONS: 'Readonly<Record<string, string>>',
  }[name];
  return `export const ${name}: ${type} = ${JSON.stringify(value, null, 2)};\n`;
}
