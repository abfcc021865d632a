import { setTimeout as sleep } from 'node:timers/promises';

export interface UntilOptions {
  /** For the message when it never happens: "the event is COMPLETED". */
  what: string;
  timeoutMs?: number;
  everyMs?: number;
}

/**
 * Polls until `check` answers something truthy, and answers that. A check that throws is asked
 * again, and its last error is the cause of the one at the deadline.
 */
export async function until<T>(
  check: () => T | Promise<T>,
  { what, timeoutMs = 10_000, everyMs = 10 }: UntilOptions,
): Promise<NonNullable<T>> {
  // Timers from node:timers/promises and no clock: works under jest's fake timers too.
  const settled = new AbortController();
  const late = Symbol('late');
  const deadline = sleep(timeoutMs, late, { signal: settled.signal }).catch(() => late);
  let last: unknown = 'nothing: it never settled';
  let cause: unknown;
  try {
    for (;;) {
      // Raced, because the check may itself hang on what is being tested.
      const result = await Promise.race([deadline, attempt(check)]);
      if (result === late) break;
      const { value, error } = result as { value?: T; error?: unknown };
      if (value) return value;
      last = value;
      cause = error;
      if ((await Promise.race([deadline, sleep(everyMs)])) === late) break;
    }
  } finally {
    settled.abort();
  }
  const saw =
    cause instanceof Error ? `Last error: ${cause.message}` : `Last answer: ${String(last)}`;
  throw new Error(`Waited ${timeoutMs} ms in vain until ${what}. ${saw}`, { cause });
}

/** Polls until the assertion does not throw. */
export async function untilPasses(assertion: () => unknown, options: UntilOptions): Promise<void> {
  await until(async () => {
    await assertion();
    return true;
  }, options);
}

export interface Deferred<T> {
  promise: Promise<T>;
  resolve(value: T | PromiseLike<T>): void;
  reject(reason: unknown): void;
}

/** A promise that the test settles by hand. */
export function deferred<T = void>(): Deferred<T> {
  let resolve!: Deferred<T>['resolve'];
  let reject!: Deferred<T>['reject'];
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
}

async function attempt<T>(check: () => T | Promise<T>): Promise<{ value?: T; error?: unknown }> {
  try {
    return { value: await check() };
  } catch (error) {
    return { error };
  }
}
