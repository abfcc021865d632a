import { describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { unprivilegedUser } from '../../tools/postgres-binaries.js';
import { opened, type ResourceScope } from './leaks.js';
import { until } from './until.js';

/** A PgBouncer in transaction mode: each transaction may have another server session. */
export interface Pooler extends AsyncDisposable {
  /** To the same database, through the pooler. */
  readonly connectionString: string;
}

export interface PoolerOptions {
  /** Server sessions, shared by all clients. Few, so that they really are. */
  readonly sessions: number;
  /** Supabase's is 6543. */
  readonly port: number;
  /** Default `127.0.0.1`. Another address of this machine (`127.0.0.2`): the same port for another test. */
  readonly host?: string;
  readonly scope: ResourceScope;
}

const EXECUTABLE = [
  ...(process.env['PATH'] ?? '').split(path.delimiter),
  '/usr/sbin',
  '/usr/local/sbin',
]
  .map((folder) => path.join(folder, 'pgbouncer'))
  .find((file) => existsSync(file));

/** Describes it behind a real pooler. Without one on this machine it says so, and fails in CI. */
export function describeWithPooler(what: string, body: () => void): void {
  if (EXECUTABLE !== undefined) {
    describe(what, body);
    return;
  }
  describe(what, () => {
    it('DID NOT RUN: there is no pgbouncer on this machine', () => {
      process.stderr.write(`\n${what}: NOT TESTED. Install pgbouncer.\n\n`);
      expect(process.env['CI']).toBeFalsy();
    });
  });
}

export async function startPooler(
  connectionString: string,
  { sessions, port, host = '127.0.0.1', scope }: PoolerOptions,
): Promise<Pooler> {
  if (EXECUTABLE === undefined) throw new Error('there is no pgbouncer on this machine');
  const server = new URL(connectionString);
  const folder = mkdtempSync(path.join(tmpdir(), 'outbox-pgbouncer-'));
  const users = path.join(folder, 'users.txt');
  const config = path.join(folder, 'pgbouncer.ini');
  const user = decodeURIComponent(server.username);
  writeFileSync(users, `"${user}" "${decodeURIComponent(server.password)}"\n`);
  writeFileSync(
    config,
    `[databases]
* = host=${server.hostname} port=${server.port}
[pgbouncer]
listen_addr = ${host}
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${users}
pool_mode = transaction
default_pool_size = ${sessions}
max_client_conn = 200
ignore_startup_parameters = extra_float_digits
log_connections = 0
log_disconnections = 0
`,
  );
  chmodSync(folder, 0o755);

  const child = spawn(EXECUTABLE, ['-q', config], {
    ...unprivilegedUser(),
    cwd: '/',
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.on('data', (bytes: Buffer) => (said += String(bytes)));
  const exited = once(child, 'exit');
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> =>
    (closing ??= (async () => {
      closed();
      child.kill('SIGKILL');
      await exited;
      rmSync(folder, { recursive: true, force: true });
    })());
  const closed = opened({ scope, describe: () => `pgbouncer on ${port}`, end: close });

  const url = new URL(connectionString);
  url.host = `${host}:${port}`;
  try {
    await until(async () => child.exitCode !== null || (await answers(url.href)), {
      what: 'pgbouncer answers',
    });
    if (child.exitCode !== null) throw new Error(`it ended with code ${child.exitCode}`);
  } catch (cause) {
    await close();
    throw new Error(`pgbouncer did not start:\n${said}`, { cause });
  }
  return { connectionString: url.href, [Symbol.asyncDispose]: close };
}

async function answers(connectionString: string): Promise<boolean> {
  const client = new pg.Client({ connectionString });
  try {
    await client.connect();
    await client.query('SELECT 1');
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => {});
  }
}
