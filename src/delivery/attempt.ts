import { AsyncLocalStorage } from 'node:async_hooks';
import type { DeliveryTelemetry, ListenerTelemetry } from '../telemetry/telemetry.js';
import type { ListenerMethod } from './listener-registry.js';
import type { OutboxContext } from './outbox-context.js';

export interface ListenerFailure {
  /** `ClassName.method`, or {@link UNNAMED_LISTENER}. */
  readonly listener: string;
  readonly error: unknown;
}

/** A raw `emitter.on()` listener: the emitter does not tell which one failed. */
export const UNNAMED_LISTENER = 'a listener added with emitter.on()';

const NOT_CALLED = 'was not called: a listener before it threw, or it was removed from the emitter';

/** What is known of one listener. One that subscribed twice has two. */
interface Call {
  readonly listener: string;
  state: 'acknowledged' | 'waiting' | 'running' | 'succeeded' | 'failed';
  error: unknown;
  readonly attempt: Attempt;
  /** Once it runs, if somebody wants to know. */
  telemetry: ListenerTelemetry | undefined;
}

/** Where to say that work which nobody awaited has failed. */
export interface StrayLog {
  error(message: string): void;
}

/**
 * One delivery of one event: what its listeners have answered so far. It travels in an AsyncLocalStorage from the
 * emit to the observing function in place of each `@OnEvent` method.
 */
export class Attempt {
  private readonly calls: Call[];
  // Made when a listener asks for it: most do not.
  private abort: AbortController | undefined;
  private reason: Error | undefined;
  private closed = false;
  private onProgress: (() => void) | undefined;

  /**
   * @param payload the very object that is emitted: listeners called with another one belong to another event
   * @param acknowledged listeners that have succeeded in an earlier attempt
   */
  constructor(
    readonly payload: Readonly<Record<string, unknown>>,
    private readonly expected: readonly ListenerMethod[],
    private readonly acknowledged: readonly string[],
    readonly strayLog?: StrayLog,
    private readonly telemetry?: DeliveryTelemetry,
  ) {
    this.calls = expected.map(({ name }) =>
      this.callOf(name, acknowledged.includes(name) ? 'acknowledged' : 'waiting'),
    );
  }

  /** Told when this attempt is over for those still running: a timeout, a lost lease, a shutdown. */
  get signal(): AbortSignal {
    if (this.abort === undefined) {
      this.abort = new AbortController();
      if (this.reason !== undefined) this.abort.abort(this.reason);
    }
    return this.abort.signal;
  }

  /** Whether the event is for this listener: a raw one may emit the same object again, as another event. */
  expects(name: string): boolean {
    return this.expected.some((listener) => listener.name === name);
  }

  /** Whether listeners were expected that have not been called yet. */
  get waits(): boolean {
    return this.calls.some(({ state }) => state === 'waiting');
  }

  /**
   * Runs one listener and notes its outcome. Never throws and never rejects: otherwise `emitAsync` would answer
   * while other listeners are still at work.
   */
  observe(name: string, run: () => unknown): unknown {
    // Called late, after the attempt was judged: the retry will call it, and it must not run twice.
    if (this.closed || this.acknowledged.includes(name)) return undefined;
    const call = this.begin(name);
    try {
      const answer =
        call.telemetry === undefined
          ? CURRENT.run(call, run)
          : call.telemetry.run(() => CURRENT.run(call, run));
      if (!isThenable(answer)) return this.succeed(call);
      return Promise.resolve(answer).then(
        () => this.succeed(call),
        (error: unknown) => this.fail(call, error),
      );
    } catch (error) {
      return this.fail(call, error);
    }
  }

  /** Notes the failure of a listener that is not an `@OnEvent` method: first, for others may have failed of it. */
  failUnnamed(error: unknown): void {
    if (!this.closed) this.calls.unshift(this.callOf(UNNAMED_LISTENER, 'failed', error));
  }

  /**
   * Notes that the emitter rejected with `error`. It is that of a listener that was never called (its provider could
   * not be created), or else of one that is not an `@OnEvent` method.
   */
  failUnobserved(error: unknown): void {
    const call = this.calls.find(({ state }) => state === 'waiting');
    if (this.closed || call === undefined) this.failUnnamed(error);
    else this.fail(call, error);
  }

  /** Resolves when nothing runs and, if asked for, nothing is waited for any more. */
  async quiet({ evenWaiting }: { evenWaiting: boolean }): Promise<void> {
    const isQuiet = (): boolean =>
      this.calls.every(({ state }) => state !== 'running' && !(evenWaiting && state === 'waiting'));
    if (isQuiet()) return;
    await new Promise<void>((resolve) => {
      this.onProgress = () => {
        if (isQuiet()) resolve();
      };
    });
  }

  /**
   * Ends the attempt: what comes later is not listened to.
   * @param brokenOff why, if the emitter has not answered yet: what still runs has failed, and is told by the signal
   */
  close(brokenOff?: Error): void {
    if (this.closed) return;
    const open = this.calls.filter(({ state }) => state === 'running' || state === 'waiting');
    for (const call of open) {
      const why = brokenOff === undefined ? NOT_CALLED : `was not called: ${brokenOff.message}`;
      this.fail(call, call.state === 'running' ? brokenOff : new Error(why));
    }
    // Every `@OnEvent` method has answered, and still the emitter waits: for a listener that nobody can observe.
    if (brokenOff !== undefined && open.length === 0) this.failUnnamed(brokenOff);
    this.closed = true;
    this.reason = brokenOff;
    this.abort?.abort(brokenOff);
  }

  /** How it ended, once closed. A name that succeeded in one call and failed in another has not succeeded. */
  result(): { succeeded: string[]; failures: readonly ListenerFailure[] } {
    const succeeded: string[] = [];
    const failures: ListenerFailure[] = [];
    for (const { listener, state, error } of this.calls) {
      if (state === 'failed') failures.push({ listener, error });
      if (state === 'succeeded' && !succeeded.includes(listener)) succeeded.push(listener);
    }
    const hasFailed = (name: string): boolean => failures.some(({ listener }) => listener === name);
    return { succeeded: succeeded.filter((name) => !hasFailed(name)), failures };
  }

  private callOf(listener: string, state: Call['state'], error?: unknown): Call {
    return { listener, state, error, attempt: this, telemetry: undefined };
  }

  private begin(listener: string): Call {
    let call = this.calls.find((known) => known.listener === listener && known.state === 'waiting');
    if (call === undefined) {
      call = this.callOf(listener, 'running');
      this.calls.push(call);
    }
    call.state = 'running';
    call.telemetry = this.telemetry?.begin(listener);
    return call;
  }

  private succeed(call: Call): undefined {
    if (this.closed) return;
    call.state = 'succeeded';
    call.telemetry?.succeeded();
    this.onProgress?.();
  }

  private fail(call: Call, error: unknown): undefined {
    if (this.closed) return;
    call.state = 'failed';
    call.error = error;
    call.telemetry?.failed(error);
    this.onProgress?.();
  }
}

/** Between the emit and the listeners it is the attempt; inside a listener, the call. */
const CURRENT = new AsyncLocalStorage<Attempt | Call>();

/** Calls `emit` so that the listeners it reaches report to `attempt`. */
export function reportingTo<T, Args extends unknown[]>(
  attempt: Attempt,
  emit: (...args: Args) => T,
  ...args: Args
): T {
  return CURRENT.run(attempt, emit, ...args);
}

/**
 * The attempt that a listener called with `payload` belongs to, if any. Inside a listener there is none: what it
 * emits itself, even the same object, is its own affair.
 */
export function attemptFor(payload: unknown): Attempt | undefined {
  const current = CURRENT.getStore();
  return current instanceof Attempt && current.payload === payload ? current : undefined;
}

/** Whose code runs, or was left running; `undefined` outside of a delivery that has somebody to tell. */
export function strayWork():
  { log: StrayLog; id: string; eventType: string; listener: string } | undefined {
  const current = CURRENT.getStore();
  const attempt = current instanceof Attempt ? current : current?.attempt;
  if (attempt?.strayLog === undefined) return undefined;
  const { id, eventType } = attempt.payload['_outbox'] as OutboxContext;
  const listener = current instanceof Attempt ? 'a listener' : (current?.listener ?? '');
  return { log: attempt.strayLog, id, eventType, listener };
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    (typeof value === 'object' || typeof value === 'function') &&
    value !== null &&
    'then' in value &&
    typeof value.then === 'function'
  );
}
