/**
 * Calls across processes: a scenario starts children, each with a heap and an event loop of its own, and calls
 * their methods.
 */
import { fork, type ChildProcess } from 'node:child_process';

export type Methods = Record<string, (argument: never) => unknown>;

interface Call {
  readonly id: number;
  readonly method: string;
  readonly argument: unknown;
}

interface Answer {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: string;
}

const KEPT_OUTPUT = 4_000;

export class Child {
  private readonly name: string;
  private readonly process: ChildProcess;
  private readonly waiting = new Map<number, PromiseWithResolvers<unknown>>();
  private nextId = 0;
  private output = '';
  private readonly exited: Promise<void>;

  constructor(
    name: string,
    program: string,
    args: readonly string[],
    { execArgv = [] }: { execArgv?: readonly string[] } = {},
  ) {
    this.name = name;
    this.process = fork(program, args, {
      execArgv: [...execArgv, '--disable-warning=ExperimentalWarning'],
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      serialization: 'advanced',
    });
    for (const stream of [this.process.stdout, this.process.stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        this.output = (this.output + chunk.toString()).slice(-KEPT_OUTPUT);
      });
    }
    this.process.on('message', (message) => this.settle(message as Answer));
    this.exited = new Promise((resolve) => {
      this.process.once('exit', (code, signal) => {
        for (const { reject } of this.waiting.values()) {
          reject(
            new Error(`${name} ended (${signal ?? code}) before it answered.\n${this.output}`),
          );
        }
        this.waiting.clear();
        resolve();
      });
    });
  }

  /** Rejects if the method throws, if the child ends, or after `withinMs`. */
  async call<T>(method: string, argument?: unknown, withinMs = 1_800_000): Promise<T> {
    const id = this.nextId++;
    const answer = Promise.withResolvers<unknown>();
    this.waiting.set(id, answer);
    const timer = setTimeout(
      () =>
        answer.reject(
          new Error(`${this.name}: no answer to ${method} in ${withinMs} ms.\n${this.output}`),
        ),
      withinMs,
    );
    try {
      this.process.send({ id, method, argument } satisfies Call);
      return (await answer.promise) as T;
    } finally {
      clearTimeout(timer);
      this.waiting.delete(id);
    }
  }

  /** Without a farewell: its database is dropped anyway, and a graceful stop may take seconds. */
  async kill(): Promise<void> {
    this.process.kill('SIGKILL');
    await this.exited;
  }

  private settle({ id, result, error }: Answer): void {
    const answer = this.waiting.get(id);
    if (error === undefined) answer?.resolve(result);
    else answer?.reject(new Error(`${this.name}: ${error}\n${this.output}`));
  }
}

/** In the child: answers the parent's calls, and ends when the parent is gone. */
export function serve(methods: Methods): void {
  process.on('disconnect', () => process.exit());
  process.on('message', (message) => void answer(message as Call));

  async function answer({ id, method, argument }: Call): Promise<void> {
    const reply = (message: Answer): boolean => process.send?.(message) ?? false;
    try {
      const called = methods[method];
      if (called === undefined) throw new Error(`no method ${method}`);
      reply({ id, result: await called(argument as never) });
    } catch (error) {
      reply({ id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
    }
  }
}
