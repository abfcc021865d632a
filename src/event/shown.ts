const LONGEST = 200;

/** A value as a message shows it: what it is, and not what is in it. */
export function shown(value: unknown): string {
  if (typeof value === 'string')
    return JSON.stringify(value.length > LONGEST ? `${value.slice(0, LONGEST)}…` : value);
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' && value !== null ? 'an object' : String(value);
}
