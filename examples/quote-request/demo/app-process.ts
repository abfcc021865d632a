import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { until } from './until.js';

export type App = 'main' | 'plain';

/** A line of Nest's log. */
export interface LogLine {
  level: string;
  context: string;
  text: string;
}

export interface AppProcessOptions {
  env: NodeJS.ProcessEnv;
  onLog?: (line: LogLine) => void;
}

const FOLDER = path.dirname(import.meta.dirname);
const PUPPET = fileURLToPath(new URL('puppet.js', import.meta.url));
const LOG_LINE = /^\[Nest\] \d+ .*? (LOG|WARN|ERROR|DEBUG|FATAL) \[(.+?)\] (.*)$/;

const START_TIMEOUT_MS = 30_000;
const REQUEST_TIMEOUT_MS = 10_000;
const STOP_TIMEOUT_MS = 15_000;

/** The example application as a process of its own. */
export class AppProcess {
  /** Everything it printed. */
  readonly output: string[] = [];
  readonly logs: LogLine[] = [];
  url = '';

  private constructor(
    readonly app: App,
    private readonly child: ChildProcess,
    private readonly exited: Promise<unknown>,
  ) {}

  static launch(app: App, { env, onLog = () => {} }: AppProcessOptions): AppProcess {
    const child = spawn(
      process.execPath,
      ['--enable-source-maps', '--import', PUPPET, path.join(FOLDER, `${app}.js`)],
      {
        env: { ...process.env, NO_COLOR: '1', ...env },
        stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
        detached: true, // Ctrl+C in a terminal is for the demo, which ends its processes in order
      },
    );
    child.on('error', (error) => started.output.push(String(error)));
    // 'close' and not 'exit': its last lines have arrived by then.
    const exited = new Promise((resolve) => child.once('close', resolve));
    const started = new AppProcess(app, child, exited);
    for (const stream of [child.stdout, child.stderr]) {
      if (stream === null) continue;
      createInterface({ input: stream }).on('line', (line) => {
        started.output.push(line);
        const [, level, context, text] = LOG_LINE.exec(line) ?? [];
        if (level === undefined || context === undefined || text === undefined) return;
        const log = { level, context, text };
        started.logs.push(log);
        onLog(log);
      });
    }
    return started;
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  get isRunning(): boolean {
    return this.pid !== undefined && this.child.exitCode === null && this.child.signalCode === null;
  }

  /** How it ended, in a word. */
  get end(): string {
    if (this.isRunning) return 'runs';
    return this.child.signalCode ?? `exit status ${this.child.exitCode}`;
  }

  /** Resolves when it answers HTTP. */
  async untilListening(): Promise<void> {
    const announcement = /^listening on (\S+)$/;
    this.url = await until(`${this.app} listens`, START_TIMEOUT_MS, () => {
      if (!this.isRunning) throw new Error(`${this.app} ended at its start: ${this.end}`);
      return this.logs.map(({ text }) => announcement.exec(text)?.[1]).find(Boolean);
    });
  }

  async get(route: string): Promise<unknown> {
    return (await this.request('GET', route)).body;
  }

  async post(route: string, body: object = {}): Promise<{ status: number; body: unknown }> {
    return this.request('POST', route, body);
  }

  /** SIGKILL as soon as the database has answered the next statement that matches. */
  async killAfter(statement: RegExp): Promise<void> {
    const armed = once(this.child, 'message');
    this.child.send({ killAfter: statement.source });
    await armed;
  }

  /** Resolves when it has ended by SIGKILL. */
  async untilKilled(): Promise<void> {
    await until(`${this.app} is killed`, REQUEST_TIMEOUT_MS, () => !this.isRunning);
    await this.exited;
    if (this.child.signalCode !== 'SIGKILL')
      throw new Error(`${this.app} should have died by SIGKILL, but ended with ${this.end}`);
  }

  kill(): void {
    this.child.kill('SIGKILL');
  }

  /** Asks it to end in order, and insists after a while. */
  async stop(): Promise<void> {
    if (!this.isRunning) return;
    this.child.kill('SIGTERM');
    const insist = setTimeout(() => this.child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    await this.exited;
    clearTimeout(insist);
  }

  async untilEnded(): Promise<void> {
    await this.exited;
  }

  private async request(
    method: string,
    route: string,
    body?: object,
  ): Promise<{ status: number; body: unknown }> {
    const response = await fetch(`${this.url}${route}`, {
      method,
      headers: { 'content-type': 'application/json', connection: 'close' },
      body: body === undefined ? null : JSON.stringify(body),
      signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    });
    return { status: response.status, body: await response.json() };
  }
}
