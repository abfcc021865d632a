import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readdirSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { migrate } from '../../src/schema/migrate.js';
import { sqlNames } from '../../src/store/postgres/sql-names.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { dumpCatalog } from './catalog-dump.js';

// Not .snap: jest would take it for one of its own.
const SNAPSHOT = path.join(import.meta.dirname, 'schema.txt');
const NAMES = sqlNames();
const FILES = readdirSync('migrations')
  .filter((file) => file.endsWith('.sql'))
  .toSorted();
// Another test may have made this role for the whole cluster; what it is granted, access.test.ts says.
const OPTIONS = { withoutGrantsTo: ['service_role'] };

/** UPDATE_SCHEMA=1 npm test -- test/schema/schema */
async function committed(current: string): Promise<string> {
  if (process.env['UPDATE_SCHEMA'] === '1') await writeFile(SNAPSHOT, current);
  return readFile(SNAPSHOT, 'utf8');
}

describe.each([14, 18] as const)('the schema on PostgreSQL %i', (major) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createDatabase(major);
  });
  afterAll(() => database.drop());

  it('is the one that was reviewed and committed', async () => {
    await migrate(database.pool, NAMES);
    const current = await dumpCatalog(database, NAMES, OPTIONS);
    expect(current).toBe(await committed(current));
  });

  it('has the same shape under other names', async () => {
    const names = sqlNames('tenant-1', `${'b'.repeat(33)}_events`);
    await migrate(database.pool, names);
    const current = await dumpCatalog(database, names, OPTIONS);
    expect(current).toBe(await readFile(SNAPSHOT, 'utf8'));
  });

  it('is made by the files as they lie, each sent as one text, twice without harm', async () => {
    await using bare = await createDatabase(major);
    const client = new pg.Client({ connectionString: bare.connectionString });
    await client.connect();
    try {
      for (let time = 0; time < 2; time++) {
        for (const file of FILES) await client.query(await readFile(`migrations/${file}`, 'utf8'));
        expect(await dumpCatalog(bare, NAMES, OPTIONS)).toBe(await readFile(SNAPSHOT, 'utf8'));
      }
    } finally {
      await client.end();
    }
    const rows = await bare.query('SELECT version, name FROM outbox_migrations ORDER BY version');
    expect(rows).toEqual(
      FILES.map((file) => ({ version: Number(file.slice(0, 3)), name: file.slice(4, -4) })),
    );
  });
});

describe('the dump', () => {
  it.each([
    ['a column', 'ALTER TABLE outbox_events ADD COLUMN extra int'],
    ['a type', 'ALTER TABLE outbox_events ALTER COLUMN retry_count TYPE bigint'],
    ['a default', `ALTER TABLE outbox_events ALTER COLUMN status SET DEFAULT 'FAILED'`],
    ['a NOT NULL', 'ALTER TABLE outbox_events ALTER COLUMN metadata DROP NOT NULL'],
    ['a constraint', 'ALTER TABLE outbox_events DROP CONSTRAINT outbox_events_status_known'],
    ['an index', 'DROP INDEX idx_outbox_events_leased_until'],
    ['a comment', `COMMENT ON TABLE outbox_events IS 'other'`],
    ['row level security', 'ALTER TABLE outbox_migrations DISABLE ROW LEVEL SECURITY'],
    ['a policy', 'CREATE POLICY open ON outbox_events USING (true)'],
    ['a grant on a table', 'GRANT SELECT ON outbox_events TO PUBLIC'],
    ['a grant on a function', 'GRANT EXECUTE ON FUNCTION outbox_stats() TO PUBLIC'],
    ['a function', `CREATE FUNCTION outbox_new() RETURNS int LANGUAGE sql AS 'SELECT 1'`],
    ['the rights of a function', 'ALTER FUNCTION outbox_stats() SECURITY DEFINER'],
    ['a search_path', 'ALTER FUNCTION outbox_stats() RESET search_path'],
    ['a volatility', 'ALTER FUNCTION outbox_stats() VOLATILE'],
    ['a table', 'CREATE TABLE outbox_more (id int)'],
    ['a storage parameter', 'ALTER TABLE outbox_events SET (fillfactor = 70)'],
  ])('notices %s', async (_, change) => {
    await using database = await createDatabase();
    await migrate(database.pool, NAMES);
    const before = await dumpCatalog(database, NAMES, OPTIONS);
    await database.query(change);
    expect(await dumpCatalog(database, NAMES, OPTIONS)).not.toBe(before);
  });
});
