import { AsyncLocalStorage } from 'node:async_hooks';
import type { ListenerMethod } from './listener-registry.js';

export interface ListenerFailure {
  /** `ClassName.method`, or {@link UNNAMED_LISTENER}. */
  readonly listener: string;
  readonly error: unknown;
}

/** A raw `emitter.on()` listener: the emitter does not tell which one failed. */
export const UNNAMED_LISTENER = 'a listener added with emitter.on()';

const NOT_CALLED = 'was not called: a listener before it threw, or it was removed from the emitter';

/**
 * One delivery of one event: what its listeners have answered so far. It travels in an AsyncLocalStorage from the
 * emit to the observing function in place of each `@OnEvent` method.
 */
export class Attempt {
  private readonly waiting: string[];
  private readonly running = new Set<string>();
  private readonly succeeded = new Set<string>();
  private readonly failures: ListenerFailure[] = [];
  // Made when a listener asks for it: most do not.
  private abort: AbortController | undefined;
  private reason: Error | undefined;
  private closed = false;
  private onProgress: () => void = () => {};
  private nextCall = 0;

  /**
   * @param payload the very object that is emitted: listeners called with another one belong to another event
   * @param acknowledged listeners that have succeeded in an earlier attempt
   */
  constructor(
    readonly payload: object,
    private readonly expected: readonly ListenerMethod[],
    private readonly acknowledged: ReadonlySet<string>,
  ) {
    this.waiting = expected.map(({ name }) => name);
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

  /** Listeners that were expected and have not been called yet. */
  get notCalled(): readonly string[] {
    return this.waiting.filter((name) => !this.acknowledged.has(name));
  }

  /**
   * Runs one listener and notes its outcome. Never throws and never rejects: otherwise `emitAsync` would answer
   * while other listeners are still at work.
   */
  observe(name: string, call: () => unknown): unknown {
    // Called late, after the attempt was judged: the retry will call it, and it must not run twice.
    if (this.closed) return undefined;
    const position = this.waiting.indexOf(name);
    if (position >= 0) this.waiting.splice(position, 1);
    if (this.acknowledged.has(name)) {
      this.onProgress();
      return undefined;
    }

    const callId = `${name}#${this.nextCall++}`;
    this.running.add(callId);
    try {
      const answer = CURRENT.run({ attempt: this, listener: name }, call);
      if (!isThenable(answer)) return this.finish(callId, name);
      return Promise.resolve(answer).then(
        () => this.finish(callId, name),
        (error: unknown) => this.finish(callId, name, { listener: name, error }),
      );
    } catch (error) {
      return this.finish(callId, name, { listener: name, error });
    }
  }

  /** Notes the failure of a listener that is not an `@OnEvent` method. */
  failUnnamed(error: unknown): void {
    if (!this.closed) this.failures.push({ listener: UNNAMED_LISTENER, error });
  }

  /**
   * Notes that the emitter rejected with `error`. It is that of a listener that was never called (its provider could
   * not be created), or else of one that is not an `@OnEvent` method.
   */
  failUnobserved(error: unknown): void {
    const [listener] = this.notCalled;
    if (this.closed || listener === undefined) return this.failUnnamed(error);
    this.waiting.splice(this.waiting.indexOf(listener), 1);
    this.failures.push({ listener, error });
  }

  /** Resolves when nothing runs and, if asked for, nothing is waited for any more. */
  async quiet(options: { evenWaiting: boolean }): Promise<void> {
    const isQuiet = (): boolean =>
      this.running.size === 0 && (!options.evenWaiting || this.waiting.length === 0);
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
    const failedBefore = this.failures.length;
    for (const callId of this.running) {
      const listener = callId.slice(0, callId.lastIndexOf('#'));
      this.failures.push({ listener, error: brokenOff });
    }
    for (const listener of this.notCalled) {
      const why = brokenOff === undefined ? NOT_CALLED : `was not called: ${brokenOff.message}`;
      this.failures.push({ listener, error: new Error(why) });
    }
    // Every `@OnEvent` method has answered, and still the emitter waits: for a listener that nobody can observe.
    if (brokenOff && this.failures.length === failedBefore) this.failUnnamed(brokenOff);
    this.closed = true;
    this.reason = brokenOff;
    this.abort?.abort(brokenOff);
  }

  /** How it ended, once closed. A name that succeeded in one call and failed in another has not succeeded. */
  result(): { succeeded: string[]; failures: readonly ListenerFailure[] } {
    const failed = new Set(this.failures.map(({ listener }) => listener));
    return {
      succeeded: [...this.succeeded].filter((name) => !failed.has(name)),
      failures: this.failures,
    };
  }

  private finish(callId: string, name: string, failure?: ListenerFailure): undefined {
    this.running.delete(callId);
    if (this.closed) return;
    if (failure === undefined) this.succeeded.add(name);
    else this.failures.push(failure);
    this.onProgress();
  }
}

interface Current {
  readonly attempt: Attempt;
  /** The listener whose code this is; `undefined` between the emit and the listeners. */
  readonly listener: string | undefined;
}

const CURRENT = new AsyncLocalStorage<Current>();

/** Runs `emit` so that the listeners it reaches report to `attempt`. */
export function reportingTo<T>(attempt: Attempt, emit: () => T): T {
  return CURRENT.run({ attempt, listener: undefined }, emit);
}

/**
 * The attempt that a listener called with `payload` belongs to, if any. Inside a listener there is none: what it
 * emits itself, even the same object, is its own affair.
 */
export function attemptFor(payload: unknown): Attempt | undefined {
  const current = CURRENT.getStore();
  if (current === undefined || current.listener !== undefined) return undefined;
  return current.attempt.payload === payload ? current.attempt : undefined;
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    (typeof value === 'object' || typeof value === 'function') &&
    value !== null &&
    'then' in value &&
    typeof value.then === 'function'
  );
}
