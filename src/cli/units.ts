import { InvalidArgumentError } from 'commander';

const UNITS_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/** A hundred years: what is longer is a slip. */
const LONGEST_MS = 36_525 * 86_400_000;

/** `90s`, `15m`, `12h`, `7d`, `2w` in milliseconds. */
export function duration(text: string): number {
  const [, number, unit = ''] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d|w)$/.exec(text) ?? [];
  const ms = Math.round(Number(number) * (UNITS_MS[unit] ?? NaN));
  if (ms >= 0 && ms <= LONGEST_MS) return ms;
  throw new InvalidArgumentError(
    'Write a number and its unit, ms, s, m, h, d or w: 90s, 15m, 12h, 7d.',
  );
}

/** A time (ISO 8601), or how long ago: `2h`. */
export function moment(text: string): Date {
  if (/^[\d.]+[a-z]+$/.test(text)) return new Date(Date.now() - duration(text));
  const time = new Date(text);
  if (/^\d{4}-\d\d-\d\d/.test(text) && !Number.isNaN(time.getTime())) return time;
  throw new InvalidArgumentError(
    'Write a time such as 2026-03-01T09:00:00Z, or how long ago: 2h, 3d.',
  );
}

export function whole(min: number, max: number): (text: string) => number {
  return (text) => {
    const number = Number(text);
    if (/^\d+$/.test(text) && number >= min && number <= max) return number;
    throw new InvalidArgumentError(`Write a whole number from ${min} to ${max}.`);
  };
}

export function rate(text: string): number {
  const number = Number(text);
  if (/^\d+(\.\d+)?$/.test(text) && number > 0 && number <= 1_000_000) return number;
  throw new InvalidArgumentError('Write a number above 0: 100.');
}

export function schemaName(text: string): string {
  if (/^[A-Za-z_][A-Za-z0-9_-]{0,62}$/.test(text)) return text;
  throw new InvalidArgumentError('Write the name of a schema: letters, digits, _ and -.');
}

/** For people: the two largest units at most. */
export function ago(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = Math.floor(ms / 1_000);
  const parts: [number, string][] = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3_600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's'],
  ];
  const first = parts.findIndex(([number]) => number > 0);
  return parts
    .slice(first, first + 2)
    .filter(([number]) => number > 0)
    .map(([number, unit]) => `${number} ${unit}`)
    .join(' ');
}

/** 1,234,567 */
export function count(number: number): string {
  return number.toLocaleString('en-US');
}
