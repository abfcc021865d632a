import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 25;

/** Asks again and again until the answer is neither false nor undefined. Every wait ends. */
export async function until<T>(
  what: string,
  timeoutMs: number,
  ask: () => T | undefined | false | Promise<T | undefined | false>,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  while (performance.now() < deadline) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    await sleep(POLL_MS);
  }
  throw new Error(`waited ${timeoutMs / 1_000} s in vain until ${what}`);
}
