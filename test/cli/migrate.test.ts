import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  accessSync,
  chmodSync,
  constants,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { type Cluster, startCluster } from '../../tools/postgres-cluster.js';
import { outboxSql } from '../../src/schema/migrate-outbox.js';
import { migrate } from '../../src/schema/migrate.js';
import { assertSchemaVersion } from '../../src/store/postgres/schema-version.js';
import { sqlNames } from '../../src/store/postgres/sql-names.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { CLI, cli } from './run-cli.js';

const FILES = readdirSync('migrations')
  .filter((file) => file.endsWith('.sql'))
  .toSorted();
const SECRET = 'hunter2-secret';

describe('nestjs-outbox-relay migrate', () => {
  let database: TestDatabase;
  beforeEach(async () => {
    database = await createDatabase();
  });
  afterEach(() => database.drop());

  it('is what the package installs: an executable with its interpreter in the first line', () => {
    expect(() => accessSync(CLI, constants.X_OK)).not.toThrow();
    expect(readFileSync(CLI, 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/);
  });

  it('migrates what DATABASE_URL names, says what it did, and again that there is nothing to do', async () => {
    expect(await cli(['migrate'], database.connectionString)).toEqual({
      code: 0,
      stdout: `Applied ${FILES.join(', ')}: now at version ${FILES.length}\n`,
      stderr: '',
    });
    await assertSchemaVersion(database.pool, sqlNames());
    expect(await cli(['migrate'], database.connectionString)).toEqual({
      code: 0,
      stdout: `Nothing to do: version ${FILES.length}\n`,
      stderr: '',
    });
  });

  it('prefers --connection, and takes --schema and --table', async () => {
    const args = [
      '--connection',
      database.connectionString,
      '--schema',
      'tenant-1',
      '--create-schema',
    ];
    const ran = await cli(
      ['migrate', ...args, '--table', 'billing_events'],
      'postgres://nobody@127.0.0.1:1/nowhere',
    );
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    await assertSchemaVersion(database.pool, sqlNames('tenant-1', 'billing_events'));
    await expect(assertSchemaVersion(database.pool, sqlNames())).rejects.toThrow('no outbox yet');
  });

  it('prints the SQL without a database, and it makes the outbox', async () => {
    const printed = await cli([
      'migrate',
      '--print',
      '--schema',
      'tenant-1',
      '--table',
      'a_events',
    ]);
    expect(printed).toMatchObject({ code: 0, stderr: '' });
    expect(printed.stdout).toBe(await outboxSql({ schema: 'tenant-1', table: 'a_events' }));
    await database.query(printed.stdout);
    await assertSchemaVersion(database.pool, sqlNames('tenant-1', 'a_events'));
  });

  it('refuses a schema that does not exist, unless it is to be created', async () => {
    const refused = await cli(['migrate', '--schema', 'bilng'], database.connectionString);
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toBe(
      '--schema "bilng" does not exist in this database: correct the name, or add --create-schema\n',
    );
    expect(await database.query(`SELECT FROM pg_namespace WHERE nspname = 'bilng'`)).toEqual([]);
    const created = await cli(
      ['migrate', '--schema', 'bilng', '--create-schema', '--json'],
      database.connectionString,
    );
    expect(JSON.parse(created.stdout)).toEqual({ from: 0, to: FILES.length, applied: FILES });
  });

  it('says with --dry-run what it would do, and does nothing', async () => {
    const dry = ['migrate', '--dry-run'];
    expect(await cli(dry, database.connectionString)).toEqual({
      code: 0,
      stdout: `Would apply ${FILES.join(', ')}: from version 0 to ${FILES.length}\n`,
      stderr: '',
    });
    await expect(assertSchemaVersion(database.pool, sqlNames())).rejects.toThrow('no outbox yet');
    await migrate(database.pool, sqlNames());
    const { stdout } = await cli([...dry, '--json'], database.connectionString);
    expect(JSON.parse(stdout)).toEqual({ from: FILES.length, to: FILES.length, pending: [] });
  });

  it('renames the functions in the examples of its comments too', async () => {
    const { stdout } = await cli(['migrate', '--print', '--table', 'a_events']);
    expect(stdout).not.toMatch(/\boutbox_enqueue_row\b/);
  });

  it.each([['-h'], ['migrate', '--help']])('explains itself: %s %s', async (...args) => {
    const { code, stdout, stderr } = await cli(args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    for (const option of ['--connection', '--schema', '--table', '--json', 'DATABASE_URL'])
      expect(stdout).toContain(option);
  });

  it.each([
    ['no command', []],
    ['another command', ['mirgate']],
    ['two commands', ['migrate', 'again']],
    ['an unknown option', ['migrate', '--schemas', 'a']],
    ['an option without its value', ['migrate', '--schema']],
  ])('answers %s with 2 and how it is used', async (_, args) => {
    const { code, stdout, stderr } = await cli(args, database.connectionString);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/Try: nestjs-outbox-relay .*--help|Usage: nestjs-outbox-relay/);
  });

  it.each([
    ['no database', ['migrate'], undefined, /^no database: pass --connection/],
    ['an empty database', ['migrate'], '', /^no database: pass --connection/],
    [
      'what is no URL',
      ['migrate'],
      `user:${SECRET}@host/db`,
      /^DATABASE_URL must be a PostgreSQL URL .*, got a text that is no URL\n$/,
    ],
    [
      'another kind of URL',
      ['migrate'],
      `mysql://u:${SECRET}@host/db`,
      /^DATABASE_URL must be .* got a URL that begins with mysql:\/\/\n$/,
    ],
    [
      'a URL with a bad port',
      ['migrate'],
      `postgres://u:${SECRET}@127.0.0.1:99999999/db`,
      /^DATABASE_URL must be .* got a URL that cannot be read/,
    ],
    [
      'a list of keyword=value',
      ['migrate'],
      `host=localhost password=${SECRET}`,
      /got a list of keyword=value/,
    ],
    [
      'an unescaped password',
      ['migrate'],
      `postgres://u:a/${SECRET}@host/db`,
      /got a URL that cannot be read/,
    ],
    [
      'a bad schema',
      ['migrate', '--schema', 'a"b'],
      'postgres://x',
      /schema must be .*, got "a\\"b"/,
    ],
    [
      'a bad table',
      ['migrate', '--print', '--table', 'a.b'],
      undefined,
      /table must be .*, got "a.b"/,
    ],
  ])('answers %s with 2 and a sentence, without a stack', async (_, args, url, message) => {
    const { code, stdout, stderr } = await cli(args, url);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/\n\s+at /);
    expect(stderr).not.toContain(SECRET);
  });

  it('answers a newer database with 1 and what to do', async () => {
    await migrate(database.pool, sqlNames());
    await database.query(
      `INSERT INTO outbox_migrations (version, name, breaks_before) VALUES (99, 'future', 99)`,
    );
    const { code, stdout, stderr } = await cli(['migrate'], database.connectionString);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/at outbox version 99 .*upgrade nestjs-outbox-relay\n$/);
    expect(stderr).not.toMatch(/\n\s+at /);
  });
});

describe('what goes wrong with the connection is answered with 1, and the password is never printed', () => {
  let cluster: Cluster | undefined;
  let folder: string;
  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'outbox-hba-'));
    chmodSync(folder, 0o755); // the server may run as another user
    const hba = path.join(folder, 'pg_hba.conf');
    writeFileSync(
      hba,
      'host all locked 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n',
      { mode: 0o644 },
    );
    cluster = await startCluster({ major: 18, settings: { hba_file: hba } });
    const client = new pg.Client({ connectionString: cluster.connectionString() });
    await client.connect();
    try {
      await client.query(`CREATE ROLE locked LOGIN PASSWORD 'right-${SECRET}'`);
    } finally {
      await client.end();
    }
  });
  afterAll(async () => {
    await cluster?.remove();
    rmSync(folder, { recursive: true });
  });

  it.each<[string, (port: number) => string, RegExp]>([
    [
      'a wrong password',
      (port) => `postgres://locked:wrong-${SECRET}@127.0.0.1:${port}/postgres`,
      /password authentication failed for user "locked"/,
    ],
    [
      'a right password and no rights',
      (port) => `postgres://locked:right-${SECRET}@127.0.0.1:${port}/postgres`,
      /permission denied/,
    ],
    [
      'no such database',
      (port) => `postgres://postgres:${SECRET}@127.0.0.1:${port}/nowhere`,
      /database "nowhere" does not exist/,
    ],
    ['nobody there', () => `postgres://u:${SECRET}@127.0.0.1:1/db`, /ECONNREFUSED/],
    ['no such host', () => `postgres://u:${SECRET}@nowhere.invalid/db`, /ENOTFOUND|EAI_AGAIN/],
    ['a URL with a bad escape', () => `postgres://u:${SECRET}%zz@127.0.0.1:1/db`, /ECONNREFUSED/],
  ])('%s', async (_, urlOf, message) => {
    const { code, stdout, stderr } = await cli(['migrate'], urlOf(cluster!.port));
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(message);
    expect(stderr).not.toContain(SECRET);
    expect(stderr).not.toMatch(/\n\s+at /);
  });
});
