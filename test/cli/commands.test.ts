import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { migrate } from '../../src/schema/migrate.js';
import { PostgresOutboxStore } from '../../src/store/postgres/postgres-outbox-store.js';
import { sqlNames } from '../../src/store/postgres/sql-names.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { cli, onTerminal, type Ran } from './run-cli.js';

let database: TestDatabase;
const run = (...args: string[]): Promise<Ran> => cli(args, database.connectionString);
const json = async (...args: string[]): Promise<unknown> =>
  JSON.parse((await run(...args, '--json')).stdout);

beforeEach(async () => {
  database = await createDatabase();
  await migrate(database.pool, sqlNames());
});
afterEach(() => database.drop());

describe('status', () => {
  beforeEach(async () => {
    await database.query(
      `INSERT INTO outbox_events (event_type, payload, scheduled_at, unheard_since) VALUES
         ('a.b', '{}', now() - interval '10 min', NULL), ('a.b', '{}', now() + interval '1 h', NULL),
         ('lost', '{}', now() + interval '1 h', now())`,
    );
    await database.query(
      `INSERT INTO outbox_events (event_type, payload, status, processed_at) VALUES ('a.b', '{}', 'FAILED', now())`,
    );
    await new PostgresOutboxStore(database.pool, sqlNames()).activity.report({
      relayId: randomUUID(),
      name: 'host:1',
      version: '0.1.0',
      listeners: [],
      number: 1,
      stopped: false,
      activity: [],
    });
  });

  it('tells counts, the oldest, what nobody hears, gates and relays', async () => {
    const { code, stdout, stderr } = await run('status');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^due +1 +the oldest for 10 min/m);
    expect(stdout).toMatch(/^scheduled +2$/m);
    expect(stdout).toMatch(/^failed +1 +see: dead-letters list$/m);
    expect(stdout).toMatch(/^unheard +1 +nobody listens to lost$/m);
    expect(stdout).toMatch(/^relays +1 +host:1 \(0\.1\.0\)$/m);
    expect(await json('status')).toMatchObject({
      due: 1,
      scheduled: 2,
      failed: 1,
      gates: { failing: 0, closed: 0 },
      relays: [{ name: 'host:1', alive: true }],
      exceeded: [],
    });
  });

  it.each([
    [['--max-age', '5m'], 3, /the oldest due event is 10 min.* late \(limit 5 min\)/],
    [['--max-age', '15m'], 0, /^$/],
    [['--max-due', '0'], 3, /due events: 1 \(limit 0\)/],
    [['--max-failed', '0'], 3, /dead letters: 1 \(limit 0\)/],
    [['--max-failed', '1', '--max-due', '1'], 0, /^$/],
    [
      ['--max-age', '5'],
      2,
      /'--max-age <duration>' argument '5' is invalid. Write a number and its unit/,
    ],
  ])('with the limits %j answers %i', async (args, code, message) => {
    const ran = await run('status', ...args);
    expect(ran).toMatchObject({ code, stderr: expect.stringMatching(message) });
  });
});

describe('gates', () => {
  beforeEach(async () => {
    await database.query(
      `INSERT INTO outbox_sentinels (key, version, failures, last_error, failed_at, closed_at, closed_until, stamped_at) VALUES
         ('records:t-7', '1', 3, 'no such table', now(), now(), now() + interval '1 h', NULL),
         ('records:t-7', '2', 1, 'timeout', now(), NULL, NULL, NULL),
         ('records:t-8', '1', 0, NULL, NULL, NULL, NULL, now())`,
    );
  });

  it('lists them, the failing ones alone, and those of a key', async () => {
    const { stdout } = await run('gates', 'list');
    expect(stdout).toMatch(/records:t-7 +1 +closed until \S+Z +3 +no such table/);
    expect(stdout).toMatch(/records:t-7 +2 +failing +1 +timeout/);
    expect(stdout).toMatch(/records:t-8 +1 +stamped +0/);
    expect(await json('gates', 'list', '--failing')).toHaveLength(2);
    expect(await json('gates', 'list', '--key', 'records:t-8')).toMatchObject([
      { key: 'records:t-8', failures: 0 },
    ]);
    expect((await run('gates', 'list', '--key', 'x')).stdout).toBe('No gates.\n');
  });

  it('reopens one version or all, and answers 3 if there is nothing to open', async () => {
    const dry = await run('gates', 'reopen', 'records:t-7', '--dry-run');
    expect(dry).toMatchObject({ code: 0, stdout: 'Would reopen 2 versions of records:t-7.\n' });
    expect(await json('gates', 'list', '--failing')).toHaveLength(2);
    expect(await run('gates', 'reopen', 'records:t-7', '--version', '2')).toMatchObject({
      code: 0,
      stdout: 'Reopened 1 version of records:t-7.\n',
    });
    expect(await json('gates', 'reopen', 'records:t-7')).toEqual({ reopened: 1 });
    expect(await run('gates', 'reopen', 'records:t-7')).toMatchObject({
      code: 3,
      stdout: '',
      stderr: expect.stringContaining('no gate records:t-7 has failures'),
    });
    expect(await run('gates', 'reopen', ' ')).toMatchObject({ code: 2 });
  });
});

describe('prune', () => {
  beforeEach(async () => {
    await database.query(
      `INSERT INTO outbox_events (event_type, payload, status, processed_at)
       SELECT 'a.b', '{}', status, now() - interval '10 days'
       FROM unnest(ARRAY['COMPLETED', 'FAILED']) AS status, generate_series(1, 1500)`,
    );
    await database.query(
      `INSERT INTO outbox_events (event_type, payload) SELECT 'a.b', '{}' FROM generate_series(1, 3)`,
    );
    await database.query(
      `INSERT INTO outbox_inbox (event_id, consumer, handled_at)
       SELECT gen_random_uuid(), 'c', now() - interval '40 days' FROM generate_series(1, 5)`,
    );
  });

  it('deletes what it is told and is old enough, and nothing that can be delivered', async () => {
    const all = [
      '--completed-older-than',
      '7d',
      '--failed-older-than',
      '30d',
      '--inbox-older-than',
      '30d',
    ];
    expect(await run('prune', ...all, '--dry-run')).toMatchObject({
      code: 0,
      stdout: 'Would prune 1,500 completed, 0 failed, 5 inbox.\n',
    });
    expect(await json('prune', ...all)).toEqual({
      dryRun: false,
      pruned: { completed: 1_500, failed: 0, inbox: 5 },
      interrupted: false,
    });
    expect(
      await database.query('SELECT status, count(*)::int FROM outbox_events GROUP BY 1 ORDER BY 1'),
    ).toEqual([
      { status: 'FAILED', count: 1_500 },
      { status: 'PENDING', count: 3 },
    ]);
  });

  it('shows how far it is on a terminal', async () => {
    const { stderr, stdout } = await onTerminal(
      ['prune', '--completed-older-than', '7d'],
      database.connectionString,
    );
    expect(stderr).toMatch(/prune completed █+░+ 1,000 of 1,500/);
    expect(stdout).toBe('Pruned 1,500 completed.\n');
  });

  it.each([
    [[], /what to prune\? Give --completed-older-than/],
    [['--completed-older-than', '7'], /argument '7' is invalid. Write a number and its unit/],
  ])('refuses %j with 2', async (args, message) => {
    const ran = await run('prune', ...args);
    expect(ran).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(message) });
  });
});

describe('doctor', () => {
  // The tests' own cluster forgets what it has written when the machine crashes, which is an error.
  it('says what is wrong, why, and the command that mends it; answers 3', async () => {
    const { code, stdout, stderr } = await run('doctor');
    expect({ code, stderr }).toEqual({ code: 3, stderr: '' });
    expect(stdout).toMatch(/^ {2}ok {2}indexes$/m);
    expect(stdout).toMatch(/^ {2}error {2}durability: fsync is off\n +why: .*\n +fix: .*fsync/m);
    expect(stdout).toMatch(/^ {2}could not look {2}ticks: there is no pg-boss/m);
    expect(stdout).toMatch(
      /\d+ errors?, \d+ warnings?, \d+ infos? in \d+ checks; 1 could not look\n$/,
    );
  });

  it('gives JSON', async () => {
    const { findings } = (await json('doctor')) as { findings: { check: string }[] };
    expect(findings.map(({ check }) => check)).toContain('durability');
  });

  it('copes with a database without an outbox', async () => {
    await using empty = await createDatabase();
    const { code, stdout } = await cli(['doctor'], empty.connectionString);
    expect(code).toBe(3);
    expect(stdout).toMatch(/error {2}schema-version: the database has no outbox yet/);
    expect(stdout).toMatch(/fix: npx nestjs-outbox-relay migrate$/m);
  });

  it('answers 1 if the database cannot be reached', async () => {
    expect(await cli(['doctor'], 'postgres://u:hunter2@127.0.0.1:1/x')).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/ECONNREFUSED/),
    });
  });
});

describe('every command', () => {
  it.each([
    'migrate',
    'status',
    'dead-letters list',
    'dead-letters show',
    'dead-letters redrive',
    'dead-letters discard',
    'gates list',
    'gates reopen',
    'prune',
    'doctor',
  ])('%s explains itself with examples, on stdout and with 0', async (command) => {
    const ran = await cli([...command.split(' '), '--help']);
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    expect(ran.stdout).toContain(`Usage: nestjs-outbox-relay ${command}`);
    expect(ran.stdout).toMatch(/Examples:\n {2}nestjs-outbox-relay /);
    for (const option of ['--connection', '--schema', '--table', '--json', '--no-color'])
      expect(ran.stdout).toContain(option);
  });

  it.each([['status', 'dead-letters list', 'gates list']])(
    'says of an outbox that is not there what to run',
    async (...commands) => {
      await using empty = await createDatabase();
      for (const command of commands) {
        expect(await cli(command.split(' '), empty.connectionString)).toMatchObject({
          code: 1,
          stdout: '',
          stderr: expect.stringMatching(
            /has no outbox yet .*run "npx nestjs-outbox-relay migrate"/,
          ),
        });
      }
    },
  );

  it('takes its options before the command too', async () => {
    const { code, stdout } = await cli([
      '--connection',
      database.connectionString,
      '--json',
      'status',
    ]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ due: 0 });
  });

  it('guesses what was meant', async () => {
    expect(await cli(['stauts'])).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(/unknown command 'stauts'\n\(Did you mean status\?\)/),
    });
    expect((await cli(['dead-letters', 'redrve'])).stderr).toMatch(/Did you mean redrive\?/);
  });

  it('has colours on a terminal only, and not with NO_COLOR or --no-color', async () => {
    const url = database.connectionString;
    expect((await onTerminal(['doctor'], url)).stdout).toContain('\u001B[31merror');
    expect((await onTerminal(['doctor'], url, { env: { NO_COLOR: '1' } })).stdout).not.toContain(
      '\u001B',
    );
    expect((await onTerminal(['doctor', '--no-color'], url)).stdout).not.toContain('\u001B');
    expect((await onTerminal(['--no-color', 'doctor'], url)).stdout).not.toContain('\u001B');
    expect((await run('doctor')).stdout).not.toContain('\u001B');
  });

  it('starts fast: without Nest, and without a database it does not need', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'outbox-hooks-'));
    const hooks = path.join(folder, 'hooks.mjs');
    writeFileSync(
      hooks,
      `import { registerHooks } from 'node:module';
       registerHooks({
         resolve(specifier, context, next) {
           if (/^(@nestjs|pg-boss|rxjs|reflect-metadata)/.test(specifier)) throw new Error('loads ' + specifier);
           return next(specifier, context);
         },
       });`,
    );
    try {
      for (const args of [['--version'], ['status'], ['doctor', '--json']]) {
        const ran = await cli(args, database.connectionString, {
          NODE_OPTIONS: `--import ${hooks}`,
        });
        expect(ran.stderr).toBe('');
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
    const startedAt = performance.now();
    await cli(['--version']);
    expect(performance.now() - startedAt).toBeLessThan(2_000);
  });
});

describe('the password', () => {
  const SECRET = 'hunter2-secret';

  it.each<[string, string[], Record<string, string>]>([
    ['in --connection', ['--connection', `postgres://u:${SECRET}@127.0.0.1:1/x`], {}],
    ['in a query string', ['--connection', `postgres://u@127.0.0.1:1/x?password=${SECRET}`], {}],
    ['in DATABASE_URL', [], { DATABASE_URL: `postgres://u:${SECRET}@127.0.0.1:1/x` }],
    ['in PGPASSWORD', [], { DATABASE_URL: 'postgres://u@127.0.0.1:1/x', PGPASSWORD: SECRET }],
    ['in a URL of the wrong kind', ['--connection', `http://u:${SECRET}@x`], {}],
    ['in a text that is no URL', ['--connection', `u:${SECRET}@x`], {}],
    [
      'as the name of the host, by a slip',
      [
        '--connection',
        `postgres://u:x@${SECRET}.invalid/x`,
        '--connection',
        `postgres://u:${SECRET}@${SECRET}.invalid/x`,
      ],
      {},
    ],
    ['as an argument too many', [`postgres://u:${SECRET}@x/y`], {}],
  ])('%s is never printed', async (_, args, env) => {
    for (const more of [[], ['--json']]) {
      for (const command of ['status', 'doctor', 'migrate']) {
        const ran = await cli([command, ...args, ...more], undefined, env);
        expect([1, 2]).toContain(ran.code);
        expect(`${ran.stdout}${ran.stderr}`).not.toContain(SECRET);
      }
    }
  });
});
