import { DEFAULT_SCHEMA, DEFAULT_TABLE } from '../store/postgres/sql-names.js';

/**
 * The pg-boss queue that an outbox ticks on. pg-boss queue names may hold letters, digits, hyphens, underscores,
 * periods and slashes.
 */
export function queueName({
  schema,
  table,
}: {
  readonly schema: string;
  readonly table: string;
}): string {
  const isDefault = schema === DEFAULT_SCHEMA && table === DEFAULT_TABLE;
  return isDefault ? 'process-outbox' : `process-outbox/${schema}.${table}`;
}
