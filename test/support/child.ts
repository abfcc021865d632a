import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { opened, type ResourceScope } from './leaks.js';
import { until } from './until.js';

export interface ChildOptions {
  /** Added to this process's environment; undefined removes a variable. */
  env?: Record<string, string | undefined>;
  args?: string[];
  /** Where the compiled apps lie. Default: those of this checkout, build/test/apps. */
  apps?: string;
  /** Until when it may run. Default: the end of the test; one that still runs fails it. */
  scope?: ResourceScope;
}

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** A line of JSON that the app printed on stdout: `console.log(JSON.stringify({ type: 'ready' }))`. */
export type Message = { type: string } & Record<string, unknown>;

export interface Child extends AsyncDisposable {
  readonly pid: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Every message so far. */
  readonly messages: readonly Message[];
  /** Resolves however it ends. */
  readonly exited: Promise<Exit>;
  /**
   * The next message of that type which no earlier call has answered. Rejects, with the output,
   * after the deadline or when the child ends before.
   */
  message(type: string, options?: { timeoutMs?: number }): Promise<Message>;
  /** The first line of stdout or stderr that matches. Rejects like `message`. */
  line(pattern: RegExp, options?: { timeoutMs?: number }): Promise<string>;
  /** Writes a line to its stdin. */
  send(line: string): void;
  /** Resolves when it has ended. Default: SIGKILL. */
  kill(signal?: NodeJS.Signals): Promise<Exit>;
}

const APPS = path.resolve('build/test/apps');

/** Starts <apps>/<app>.js, compiled from test/apps/<app>.ts, as a process of its own. */
export function startChild(
  app: string,
  { env, args = [], apps = APPS, scope = 'test' }: ChildOptions = {},
): Child {
  const file = path.join(apps, `${app}.js`);
  if (!existsSync(file)) throw new Error(`${file} does not exist: is there a test/apps/${app}.ts?`);
  return follow(
    spawn(process.execPath, ['--enable-source-maps', file, ...args], {
      env: { ...process.env, ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
    }),
    app,
    scope,
  );
}

function follow(child: ChildProcess, app: string, scope: ResourceScope): Child {
  const stdout: string[] = [];
  const stderr: string[] = [];
  const messages: Message[] = [];
  const taken = new Set<Message>();
  let exit: Exit | undefined;

  onLine(child.stdout, (line) => {
    stdout.push(line);
    const message = parseMessage(line);
    if (message) messages.push(message);
  });
  onLine(child.stderr, (line) => stderr.push(line));
  child.stdin?.on('error', () => {}); // writing to one that has just ended

  const exited = new Promise<Exit>((resolve, reject) => {
    child.once('error', reject);
    // 'close' and not 'exit': its last lines have arrived by then.
    child.once('close', (code, signal) => {
      closed();
      resolve((exit = { code, signal }));
    });
  });
  exited.catch(() => {});

  const output = () =>
    `--- stdout of ${app}\n${stdout.join('\n')}\n--- stderr of ${app}\n${stderr.join('\n')}`;
  const kill = (signal: NodeJS.Signals = 'SIGKILL') => {
    child.kill(signal);
    return exited;
  };
  const closed = opened({
    scope,
    describe: () => `child process ${app} (pid ${child.pid}) still runs.\n${output()}`,
    end: () => kill(),
  });

  async function wait<T>(find: () => T | undefined, what: string, timeoutMs = 10_000): Promise<T> {
    const found = await until(() => find() ?? exit, { what, timeoutMs }).catch((error: unknown) => {
      throw new Error(`${(error as Error).message}\n${output()}`);
    });
    if (found !== exit) return found as T;
    throw new Error(
      `Child ${app} ended (${exit.signal ?? exit.code}) before ${what}.\n${output()}`,
    );
  }

  return {
    pid: child.pid ?? -1,
    get stdout() {
      return stdout.join('\n');
    },
    get stderr() {
      return stderr.join('\n');
    },
    messages,
    exited,
    async message(type, { timeoutMs } = {}) {
      const isNext = (message: Message) => message.type === type && !taken.has(message);
      const message = await wait(() => messages.find(isNext), `${app} says "${type}"`, timeoutMs);
      taken.add(message);
      return message;
    },
    line(pattern, { timeoutMs } = {}) {
      const find = () => [...stdout, ...stderr].find((line) => pattern.test(line));
      return wait(find, `${app} prints ${String(pattern)}`, timeoutMs);
    },
    send(line) {
      child.stdin?.write(`${line}\n`);
    },
    kill,
    async [Symbol.asyncDispose]() {
      await kill();
    },
  };
}

function onLine(stream: NodeJS.ReadableStream | null, take: (line: string) => void): void {
  if (stream) createInterface({ input: stream, crlfDelay: Infinity }).on('line', take);
}

function parseMessage(line: string): Message | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    const value = JSON.parse(line) as Partial<Message>;
    return typeof value.type === 'string' ? (value as Message) : undefined;
  } catch {
    return undefined;
  }
}
