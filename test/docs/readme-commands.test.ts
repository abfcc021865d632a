import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { PostgresOutboxStore } from '../../src/store/postgres/postgres-outbox-store.js';
import { SCHEMA_VERSION } from '../../src/store/postgres/schema-version.js';
import { sqlNames } from '../../src/store/postgres/sql-names.js';
import { startChild } from '../support/child.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { until } from '../support/until.js';
import { readMarkdown, ROOT } from './markdown.js';
import { compileSnippets } from './snippet-project.js';

// The Korean one has the same code, which another test sees to.
const FILE = 'README.md';
const { blocks } = readMarkdown(FILE);

describe('the quick start of the README', () => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await createDatabase();
    await compileSnippets(FILE, 'quick-start');
  });
  afterAll(() => database.drop());

  it('migrates, saves, enqueues, delivers, and stops when it is told to', async () => {
    const [migrate] = runnableCommands();
    await runCommand(migrate!, database.connectionString);
    await database.query(sqlBlock('CREATE TABLE quote_requests'));

    const child = startChild('../../docs/quick-start/out/main', {
      env: { DATABASE_URL: database.connectionString },
    });
    const line = await child.line(/^notify: /, { timeoutMs: 30_000 });
    // What it prints is what the README says it prints.
    expect(blocks.map(({ code }) => code).join()).toContain(`// ${line}\n`);

    const finished = () =>
      database.query(`SELECT event_type, acknowledged_by, retry_count, payload->>'projectName' AS project
                      FROM outbox_events WHERE status = 'COMPLETED'`);
    const rows = await until(
      async () => {
        const found = await finished();
        return found.length > 0 && found;
      },
      { what: 'the event is COMPLETED' },
    );
    expect(rows).toEqual([
      {
        event_type: 'quote_request.created',
        acknowledged_by: [],
        retry_count: 0,
        project: 'Office renovation',
      },
    ]);
    expect(await database.query('SELECT project_name FROM quote_requests')).toEqual([
      { project_name: 'Office renovation' },
    ]);

    expect(await child.kill('SIGTERM')).toEqual({ code: null, signal: 'SIGTERM' });
    expect(child.stderr).toBe('');
  });
});

describe('the test that the README shows', () => {
  it('prints what the README says it prints', async () => {
    await compileSnippets(FILE, 'testing');
    const child = startChild('../../docs/testing/out/testing', { env: { NO_COLOR: '1' } });
    expect(await child.exited).toEqual({ code: 0, signal: null });
    const { code } = blocks.find((block) => block.code.startsWith('// testing.ts'))!;
    const promised = [...code.matchAll(/^console\.log.*; \/\/ (.*)$/gm)].map(([, text]) => text);
    const printed = child.stdout.split('\n').filter((line) => !line.startsWith('[Nest]'));
    expect(printed).toEqual(['notify: Office renovation, attempt 1', ...promised]);
  });
});

describe('the commands of the README', () => {
  it('all run, one after the other, in an empty database', async () => {
    await using database = await createDatabase();
    const commands = runnableCommands();
    expect(commands.length).toBeGreaterThan(2);
    for (const command of commands) await runCommand(command, database.connectionString);
    const [row] = await database.query('SELECT max(version) AS version FROM outbox_migrations');
    expect(row).toEqual({ version: SCHEMA_VERSION });
  });

  it('print SQL that makes an outbox under other names', async () => {
    await using database = await createDatabase();
    const print = runnableCommands().find((command) => command.includes('--print'));
    const folder = await runCommand(print!, database.connectionString);
    await database.query(readFileSync(path.join(folder, 'outbox.sql'), 'utf8'));
    expect(await database.query('SELECT count(*)::int FROM billing.billing_outbox_events')).toEqual(
      [{ count: 0 }],
    );
  });
});

describe('the SQL of the README', () => {
  it('lets a role that owns nothing do all that an application needs, and the rest stays closed', async () => {
    await using database = await createDatabase();
    const app = `app_${database.name}`;
    await runCommand('npx nestjs-outbox-relay migrate', database.connectionString);
    await database.query(`CREATE ROLE ${app} LOGIN`);
    const url = new URL(database.connectionString);
    url.username = app;
    const pool = new pg.Pool({ connectionString: url.href });
    try {
      const store = new PostgresOutboxStore(pool, sqlNames());
      await expect(store.stats()).rejects.toThrow('permission denied');
      await expect(store.check()).rejects.toThrow('permission denied');

      await database.query(sqlBlock('GRANT').replaceAll(/\bTO app\b/g, `TO ${app}`));
      await doEverything(store);
      await pool.query(sqlBlock('SELECT event_type'));
    } finally {
      await pool.end();
      await database.query(`DROP OWNED BY ${app}; DROP ROLE ${app}`);
    }
  });
});

/** Every verb of the store once, on one event. */
async function doEverything(store: PostgresOutboxStore): Promise<void> {
  const id = '7a0e1c5e-0000-4000-8000-000000000001';
  const request = { limit: 10, leaseMs: 60_000 };
  await store.check();
  await store.enqueue([{ id, eventType: 'a.b', payload: {}, metadata: {} }]);
  const [first] = await store.claim(request);
  expect(await store.renew([first!], 60_000)).toEqual([id]);
  const failure = { retryCount: 5, lastError: 'why', acknowledgedBy: [] };
  expect(await store.settle([{ ...first!, ...failure, outcome: 'failed' }])).toEqual([id]);
  expect((await store.deadLetters({ limit: 10 })).items).toHaveLength(1);
  expect(await store.redrive({ limit: 10, firstDelayMs: 0, spacingMs: 0 })).toEqual([id]);
  const [second] = await store.claimOthers({ ...request, otherThan: [] });
  const { settled } = await store.settleAndClaim([{ ...second!, outcome: 'completed' }], request);
  expect([...settled]).toEqual([id]);
  expect(await store.reap(request)).toEqual([]);
  expect(await store.discard({ limit: 10 })).toEqual([]);
  expect(await store.prune({ status: 'COMPLETED', olderThanMs: 0, limit: 10 })).toBe(1);
  expect(await store.stats()).toMatchObject({ due: 0, failed: 0 });
}

function sqlBlock(start: string): string {
  const block = blocks.find(({ lang, code }) => lang === 'sql' && code.startsWith(start));
  if (!block) throw new Error(`${FILE} has no SQL that starts with ${start}`);
  return block.code;
}

/** Commands that need nothing but the package and a database. */
function runnableCommands(): string[] {
  return blocks
    .filter(({ lang }) => lang === 'bash')
    .flatMap(({ code }) => code.split('\n'))
    .filter((line) => line.startsWith('npx nestjs-outbox-relay '));
}

/** As a shell runs it in an empty folder, where npx finds the package as it is built. @returns the folder */
async function runCommand(command: string, databaseUrl: string): Promise<string> {
  const folder = path.join(ROOT, 'build', 'docs', 'shell');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(path.join(folder, 'bin'), { recursive: true });
  const cli = path.join(ROOT, 'dist', 'cli.js');
  const npx = `#!/bin/sh\n[ "$1" = nestjs-outbox-relay ] || exit 9\nshift\nexec "${process.execPath}" "${cli}" "$@"\n`;
  writeFileSync(path.join(folder, 'bin', 'npx'), npx, { mode: 0o755 });
  await promisify(execFile)('sh', ['-e', '-c', command], {
    cwd: folder,
    env: {
      PATH: `${path.join(folder, 'bin')}${path.delimiter}${process.env['PATH'] ?? ''}`,
      DATABASE_URL: databaseUrl,
    },
  });
  return folder;
}
