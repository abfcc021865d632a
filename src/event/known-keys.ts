import leven from 'leven';
import { invalid } from './outbox-error.js';
import { shown } from './shown.js';

/**
 * Refuses a key that nobody reads: a misspelled option would be ignored without a word.
 * @param path what stands before the key in the message, e.g. `relay.`
 * @throws OutboxError `INVALID_ARGUMENT` with what was probably meant
 */
export function assertKnownKeys(path: string, given: unknown, known: readonly string[]): void {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    const what = path === '' ? 'options' : path.slice(0, -1);
    throw invalid(`${what} must be an object { ${known.join(', ')} }, got ${shown(given)}`);
  }
  const unknown = Object.keys(given).find((key) => !known.includes(key));
  if (unknown === undefined) return;
  const meant = nearest(unknown, known);
  const hint = meant === undefined ? `known are ${known.join(', ')}` : `did you mean ${meant}?`;
  throw invalid(`unknown option ${path}${unknown}: ${hint}`);
}

function nearest(key: string, known: readonly string[]): string | undefined {
  const distanceTo = (other: string): number => leven(key.toLowerCase(), other.toLowerCase());
  const [closest] = known.toSorted((a, b) => distanceTo(a) - distanceTo(b));
  // Half of the letters may differ: with more, a guess helps nobody.
  return closest !== undefined && distanceTo(closest) * 2 <= key.length ? closest : undefined;
}
