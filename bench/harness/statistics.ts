export function median(values: readonly number[]): number {
  return percentile(values, 50);
}

/** Between two values it takes the mean, so that the median of an even number of values is the usual one. */
export function percentile(values: readonly number[], percent: number): number {
  if (values.length === 0) return NaN;
  const sorted = values.toSorted((a, b) => a - b);
  const place = ((sorted.length - 1) * percent) / 100;
  const below = sorted[Math.floor(place)] ?? NaN;
  const above = sorted[Math.ceil(place)] ?? NaN;
  return below + (above - below) * (place - Math.floor(place));
}

export function sum(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0);
}
