import { invalid } from '../event/outbox-error.js';

/** PostgreSQL's Bind message counts parameters in 16 bits: no statement can carry more, and nothing can be tuned. */
export const MAX_BIND_PARAMETERS = 65_535;

/**
 * Splits rows so that each part fits into one statement: 10,922 rows of six parameters do, 10,923 do not.
 *
 * ```ts
 * for (const rows of chunk(records, 3)) {
 *   await pool.query(insertManySql(rows.length), rows.flatMap(({ id, name, tenantId }) => [id, name, tenantId]));
 * }
 * ```
 *
 * @param parametersPerRow 1 to 65,535
 * @param maxRows no part has more rows than this, even if they would fit
 * @throws OutboxError `INVALID_ARGUMENT`
 */
export function chunk<Row>(
  rows: readonly Row[],
  parametersPerRow: number,
  maxRows: number = MAX_BIND_PARAMETERS,
): Row[][] {
  if (!Array.isArray(rows)) throw invalid(`rows must be an array, got ${typeof rows}`);
  assertCount('parametersPerRow', parametersPerRow);
  assertCount('maxRows', maxRows);
  const size = Math.min(Math.floor(MAX_BIND_PARAMETERS / parametersPerRow), maxRows);
  return partsOf(rows, size);
}

/** Consecutive parts of at most so many. */
export function partsOf<Item>(items: readonly Item[], size: number): Item[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  );
}

function assertCount(name: string, value: unknown): void {
  if (
    typeof value === 'number' &&
    Number.isInteger(value) &&
    value >= 1 &&
    value <= MAX_BIND_PARAMETERS
  ) {
    return;
  }
  throw invalid(
    `${name} must be a whole number from 1 to ${MAX_BIND_PARAMETERS}, got ${String(value)}`,
  );
}
