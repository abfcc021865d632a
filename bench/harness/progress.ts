const startedAt = performance.now();

/** A line with the time since the start. */
export function say(text: string): void {
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  const clock = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
  console.log(`[${clock.padStart(6)}] ${text}`);
}
