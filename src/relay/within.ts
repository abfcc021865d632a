import { setTimeout as sleep } from 'node:timers/promises';

/** Resolves when `work` does, or when so many milliseconds are over. @throws what `work` throws in time */
export async function within(limitMs: number, work: Promise<unknown>): Promise<void> {
  const timeout = new AbortController();
  try {
    await Promise.race([
      work,
      sleep(limitMs, undefined, { signal: timeout.signal }).catch(() => {}),
    ]);
  } finally {
    timeout.abort();
  }
}
