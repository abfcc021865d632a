import { OTHER } from './bounded-names.js';

/** The kind of a failure, for the attribute `error.type`: the name of its class, never its message. */
export function failureName(error: unknown): string {
  if (typeof error !== 'object' || error === null) return OTHER;
  const name: unknown = 'name' in error ? error.name : undefined;
  return typeof name === 'string' && name !== '' ? name.slice(0, 100) : OTHER;
}
