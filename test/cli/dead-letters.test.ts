import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import pg from 'pg';
import { migrate } from '../../src/schema/migrate.js';
import { channelOf } from '../../src/store/postgres/pg-wake-channel.js';
import { sqlNames } from '../../src/store/postgres/sql-names.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { until } from '../support/until.js';
import { CLI, cli, onTerminal, type Ran } from './run-cli.js';

const A = '7a0e1c5e-0000-4000-8000-00000000000a';
const B = '7a0e1c5e-0000-4000-8000-00000000000b';
const C = '7a0e1c5e-0000-4000-8000-00000000000c';
const NOBODY = '7a0e1c5e-0000-4000-8000-0000000000ff';

let database: TestDatabase;
const run = (...args: string[]): Promise<Ran> => cli(args, database.connectionString);
const json = async (...args: string[]): Promise<unknown> =>
  JSON.parse((await run(...args, '--json')).stdout);

beforeEach(async () => {
  database = await createDatabase();
  await migrate(database.pool, sqlNames());
  await database.query(
    `INSERT INTO outbox_events (id, event_type, payload, status, retry_count, last_error, processed_at) VALUES
       ('${A}', 'quote.created', '{"n": 1}', 'FAILED', 5, 'gateway timeout', now() - interval '3 days'),
       ('${B}', 'quote.created', '{"n": 2}', 'FAILED', 5, 'no phone number', now() - interval '2 hours'),
       ('${C}', '견적요청.접수완료', '{"n": 3}', 'FAILED', 1, 'gateway TIMEOUT', now() - interval '1 hour')`,
  );
});
afterEach(() => database.drop());

const statuses = async (): Promise<Record<string, string>> =>
  Object.fromEntries(
    (
      await database.query<{ id: string; status: string }>('SELECT id, status FROM outbox_events')
    ).map(({ id, status }) => [id, status]),
  );

async function flood(number: number): Promise<void> {
  await database.query(
    `INSERT INTO outbox_events (event_type, payload, status, processed_at)
     SELECT 'flood', '{}', 'FAILED', now() FROM generate_series(1, ${number})`,
  );
}

describe('dead-letters list', () => {
  const ids = async (...args: string[]): Promise<string[]> =>
    ((await json('dead-letters', 'list', ...args)) as { items: { id: string }[] }).items.map(
      ({ id }) => id,
    );

  it('lists them newest first, by every filter', async () => {
    expect(await ids()).toEqual([C, B, A]);
    expect(await ids('--type', 'quote.created')).toEqual([B, A]);
    expect(await ids('--matching', 'timeout')).toEqual([C, A]);
    expect(await ids('--id', A, C)).toEqual([C, A]);
    expect(await ids('--failed-after', '1d')).toEqual([C, B]);
    expect(await ids('--failed-before', new Date(Date.now() - 86_400_000).toISOString())).toEqual([
      A,
    ]);
    expect(await ids('--type', 'quote.created', '--matching', 'phone')).toEqual([B]);
  });

  it('pages with --limit and --after, and takes every page with --all', async () => {
    const first = (await json('dead-letters', 'list', '--limit', '2')) as { next: string };
    expect(await ids('--limit', '2', '--after', first.next)).toEqual([A]);
    const { stderr } = await run('dead-letters', 'list', '--limit', '2');
    expect(stderr).toBe(`There are more: --after ${first.next}\n`);
    await flood(1_001);
    expect(await ids('--all')).toHaveLength(1_004);
  });

  it('prints a table whose columns meet below Korean letters, which are two columns wide', async () => {
    const { stdout, code } = await run('dead-letters', 'list');
    expect(code).toBe(0);
    const lines = stdout.trimEnd().split('\n');
    expect(lines).toHaveLength(4);
    expect(stdout).toContain(' 견적요청.접수완료 '); // where nobody reads it on a screen, nothing is cut
    const startOf = (line: string, what: RegExp): number =>
      Array.from(line.slice(0, line.search(what))).reduce(
        (sum, letter) => sum + (/[가-힣]/.test(letter) ? 2 : 1),
        0,
      );
    expect(startOf(lines[1]!, /gateway TIMEOUT/)).toBe(startOf(lines[2]!, /no phone number/));
    expect(startOf(lines[1]!, /gateway TIMEOUT/)).toBe(startOf(lines[0]!, /LAST ERROR/));
  });

  it('fits a terminal', async () => {
    await database.query(`UPDATE outbox_events SET last_error = repeat('까닭', 100)`);
    const { stdout } = await onTerminal(['dead-letters', 'list'], database.connectionString, {
      columns: 80,
      env: { NO_COLOR: '1' },
    });
    for (const line of stdout.trimEnd().split('\n')) {
      const width = [...line].reduce((sum, letter) => sum + (/[가-힣]/.test(letter) ? 2 : 1), 0);
      expect(width).toBeLessThanOrEqual(80);
    }
    expect(stdout).toContain('…');
  });

  it('says so when there are none', async () => {
    expect(await run('dead-letters', 'list', '--type', 'x')).toEqual({
      code: 0,
      stdout: 'No dead letters.\n',
      stderr: '',
    });
  });

  it.each([
    ['--limit', '0', /'--limit <n>' argument '0' is invalid. Write a whole number from 1 to 500/],
    [
      '--failed-after',
      'yesterday',
      /'--failed-after <time>' argument 'yesterday' is invalid. Write a/,
    ],
    ['--id', 'x', /an event id is a UUID, got "x"/],
    ['--after', 'x', /after must be the "next" of an earlier page/],
    ['--tpe', 'x', /unknown option '--tpe'\n\(Did you mean --type\?\)/],
  ])('refuses %s %s with 2', async (option, value, message) => {
    const { code, stdout, stderr } = await run('dead-letters', 'list', option, value);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(message);
  });
});

describe('dead-letters show', () => {
  it('shows all of an event', async () => {
    const { code, stdout } = await run('dead-letters', 'show', A);
    expect(code).toBe(0);
    for (const part of [A, 'quote.created', 'FAILED', 'gateway timeout', '"n": 1'])
      expect(stdout).toContain(part);
    expect(await json('dead-letters', 'show', A)).toMatchObject({ id: A, payload: { n: 1 } });
  });

  it('answers 3 where there is none, and 2 for what is no id', async () => {
    expect(await run('dead-letters', 'show', NOBODY)).toMatchObject({
      code: 3,
      stdout: '',
      stderr: expect.stringContaining(`there is no event ${NOBODY}`),
    });
    expect(await run('dead-letters', 'show', 'x')).toMatchObject({ code: 2 });
    expect(await run('dead-letters', 'show')).toMatchObject({ code: 2 });
  });
});

describe('what comes from outside and would be obeyed by a terminal', () => {
  // Clears the screen; sets the title; in C1; turns the writing; a bell, a line of its own.
  const HOSTILE = '\u001B[2J\u001B]0;owned\u0007\u009B31m\u202Egnp.exe\r\nroot# \u2028\u200B\u007F';
  const OBEYED = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

  beforeEach(async () => {
    await database.pool.query(
      `UPDATE outbox_events SET event_type = $1::text, last_error = $1::text, payload = $2, metadata = $2`,
      [HOSTILE, JSON.stringify({ [HOSTILE]: HOSTILE })],
    );
  });

  it.each([
    [['dead-letters', 'list']],
    [['dead-letters', 'list', '--json']],
    [['dead-letters', 'show', A]],
    [['dead-letters', 'show', A, '--json']],
    [['dead-letters', 'redrive', '--all', '--dry-run']],
    [['status']],
    [['doctor']],
    [['doctor', '--json']],
  ])('is shown and not obeyed: %j', async (args) => {
    const { stdout, stderr } = await run(...args);
    const printed = `${stdout}${stderr}`.split('\n').filter((line) => OBEYED.test(line));
    expect(printed).toEqual([]);
    expect(stdout).not.toMatch(/^root# /m);
    if (args[0] === 'dead-letters') expect(stdout).toMatch(/\\u\{?202e/);
  });

  it('is the same to whoever parses the JSON', async () => {
    expect(await json('dead-letters', 'show', A)).toMatchObject({
      eventType: HOSTILE,
      payload: { [HOSTILE]: HOSTILE },
    });
  });
});

describe('dead-letters redrive', () => {
  it('redrives one without asking, and wakes the relays', async () => {
    const listener = new pg.Client({ connectionString: database.connectionString });
    await listener.connect();
    try {
      const woken = once(listener, 'notification');
      await listener.query(`LISTEN ${listener.escapeIdentifier(channelOf(sqlNames()))}`);
      expect(await run('dead-letters', 'redrive', A)).toEqual({
        code: 0,
        stdout: 'Redriven 1 dead letter.\n',
        stderr: '',
      });
      await woken;
    } finally {
      await listener.end();
    }
    expect(await statuses()).toEqual({ [A]: 'PENDING', [B]: 'FAILED', [C]: 'FAILED' });
  });

  it('spreads many as it is told', async () => {
    await run('dead-letters', 'redrive', '--all', '--per-second', '0.1', '--yes');
    const [row] = await database.query<{ spread: number }>(
      `SELECT extract(epoch FROM max(scheduled_at) - min(scheduled_at))::float8 AS spread FROM outbox_events`,
    );
    expect(row!.spread).toBeCloseTo(20, 0);
  });

  it('refuses more than one where nobody can be asked, unless told --yes', async () => {
    expect(await run('dead-letters', 'redrive', '--type', 'quote.created')).toEqual({
      code: 2,
      stdout: '',
      stderr: 'this would redrive 2 dead letters: add --yes to do it, or --dry-run to look\n',
    });
    expect(Object.values(await statuses())).toEqual(['FAILED', 'FAILED', 'FAILED']);
    const done = await run('dead-letters', 'redrive', '--matching', 'timeout', '--yes', '--json');
    expect(JSON.parse(done.stdout)).toEqual({ redriven: 2, matching: 2, interrupted: false });
    expect(await statuses()).toEqual({ [A]: 'PENDING', [B]: 'FAILED', [C]: 'PENDING' });
  });

  it('shows with --dry-run what it would do, and does nothing', async () => {
    const { code, stdout } = await run('dead-letters', 'redrive', '--all', '--dry-run');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Would redrive 3 dead letters\.\n/);
    for (const id of [A, B, C]) expect(stdout).toContain(id);
    expect(await json('dead-letters', 'redrive', '--all', '--dry-run')).toMatchObject({
      dryRun: true,
      matching: 3,
    });
    expect(Object.values(await statuses())).toEqual(['FAILED', 'FAILED', 'FAILED']);
  });

  it.each([
    [[], /which dead letters to redrive\?/],
    [['--all', '--type', 'x'], /--all and a choice exclude each other/],
    [[A, '--all'], /--all and a choice exclude each other/],
    [['x'], /an event id is a UUID, got "x"/],
    [
      [A, '--per-second', '0'],
      /'--per-second <n>' argument '0' is invalid. Write a number above 0/,
    ],
  ])('refuses %j with 2', async (args, message) => {
    const ran = await run('dead-letters', 'redrive', ...args);
    expect(ran).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(message) });
  });

  it('answers 3 if an id is no dead letter', async () => {
    expect(await run('dead-letters', 'redrive', A, NOBODY)).toEqual({
      code: 3,
      stdout: 'Redriven 1 dead letter.\n',
      stderr: '1 of the ids is no dead letter (any more)\n',
    });
  });

  it.each([
    ['y', 0, 'Redriven 3 dead letters.\n', 'PENDING'],
    ['n', 130, '', 'FAILED'],
    ['', 130, '', 'FAILED'],
    ['\u0003', 130, '', 'FAILED'],
    ['\u0004', 130, '', 'FAILED'],
  ])('asks on a terminal; the answer %j leads to %i', async (answer, code, stdout, status) => {
    const ran = await onTerminal(['dead-letters', 'redrive', '--all'], database.connectionString, {
      answer,
    });
    expect(ran).toMatchObject({ code, stdout });
    expect(ran.stderr).toContain('Redrive 3 dead letters? [y/N]');
    expect(await statuses()).toEqual({ [A]: status, [B]: status, [C]: status });
  });

  it('shows how far it is on a terminal, and nothing of the kind elsewhere', async () => {
    await flood(1_200);
    const args = ['dead-letters', 'redrive', '--type', 'flood', '--yes'];
    const ran = await onTerminal(args, database.connectionString);
    expect(ran.stderr).toMatch(/redrive █+░+ 500 of 1,200/);
    expect(ran.stderr.endsWith('\r\u001B[K')).toBe(true);
    expect((await run('dead-letters', 'redrive', '--all', '--yes')).stderr).toBe('');
  });
});

describe('dead-letters discard', () => {
  it('discards those that are chosen, and not without a word', async () => {
    expect(await run('dead-letters', 'discard', '--all')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/this would discard 3 dead letters: add --yes/),
    });
    expect(await run('dead-letters', 'discard', '--failed-before', '1d')).toMatchObject({
      code: 0,
      stdout: 'Discarded 1 dead letter.\n',
    });
    expect(Object.keys(await statuses()).toSorted()).toEqual([B, C]);
  });

  it('stops after the batch under way when told to, and says how far it came', async () => {
    await flood(60_000);
    const child = spawn(
      process.execPath,
      [CLI, 'dead-letters', 'discard', '--type', 'flood', '--yes'],
      { env: { DATABASE_URL: database.connectionString }, stdio: ['ignore', 'pipe', 'pipe'] },
    );
    let stdout = '';
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
    const closed = once(child, 'close');
    const left = async (): Promise<number> =>
      (await database.query<{ n: number }>('SELECT count(*)::int AS n FROM outbox_events'))[0]!.n;
    await until(async () => (await left()) < 60_003, { what: 'a batch is gone' });
    child.kill('SIGINT');
    expect(await closed).toEqual([130, null]);
    const [, done] = /^Stopped: discarded ([\d,]+) of 60,000 dead letters\.\n$/.exec(stdout) ?? [];
    expect(60_003 - Number(done?.replaceAll(',', ''))).toBe(await left());
  });
});

it('ends quietly when nobody reads on', async () => {
  await flood(20_000);
  const child = spawn(
    'sh',
    ['-c', `"${process.execPath}" "${CLI}" dead-letters list --all --json | head -n 1; echo done`],
    {
      env: { PATH: process.env['PATH'], DATABASE_URL: database.connectionString },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  const read = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk: Buffer) => (read.stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (read.stderr += chunk.toString()));
  await once(child, 'close');
  expect(read).toEqual({ stdout: '{\ndone\n', stderr: '' });
});
