/**
 * Waits for what the user's code does, but not for ever.
 * @throws what it throws, `signal`'s reason once that is aborted, or that it timed out
 */
export async function bounded<T>(
  what: string,
  limitMs: number,
  signal: AbortSignal,
  work: () => PromiseLike<T> | T,
): Promise<T> {
  signal.throwIfAborted();
  let timer: NodeJS.Timeout | undefined;
  let onAbort = (): void => {};
  const brokenOff = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} timed out after ${limitMs} ms`)), limitMs);
    onAbort = () => reject(signal.reason as Error);
    signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    // An async function, so that what is thrown at once rejects as well.
    return await Promise.race([brokenOff, (async () => work())()]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}
