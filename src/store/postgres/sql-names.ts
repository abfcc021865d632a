import { invalid } from '../../event/outbox-error.js';

export const DEFAULT_SCHEMA = 'public';
export const DEFAULT_TABLE = 'outbox_events';

// Everything else is named after the table's prefix; with 40 characters the longest name of an index or a constraint
// stays within PostgreSQL's 63, which it would cut in silence.
const MAX_TABLE_LENGTH = 40;
const MAX_SCHEMA_LENGTH = 63;

/** The quoted names of everything the outbox owns in the database. */
export interface SqlNames {
  /** As configured, unquoted. */
  readonly schema: string;
  readonly table: string;
  /** `outbox` for `outbox_events`: what the functions and further tables are named after. */
  readonly prefix: string;
  /** `"public"."outbox_events"` */
  readonly events: string;
  /** `"public"."outbox_<name>"` */
  qualified(name: string): string;
}

/**
 * Checks the configured names and quotes them. A stated rule, and not "quote anything": the names also appear in
 * function bodies, index names and, with Supabase, URLs.
 * @throws OutboxError `INVALID_ARGUMENT`
 */
export function sqlNames(schema: string = DEFAULT_SCHEMA, table: string = DEFAULT_TABLE): SqlNames {
  if (
    typeof schema !== 'string' ||
    !/^[A-Za-z_][A-Za-z0-9_-]*$/.test(schema) ||
    schema.length > MAX_SCHEMA_LENGTH
  ) {
    throw invalid(
      `schema must be 1 to ${MAX_SCHEMA_LENGTH} letters, digits, underscores or hyphens, starting with a letter or ` +
        `underscore, got ${JSON.stringify(schema)}`,
    );
  }
  // In pg_temp, events would be gone with the connection; the others are the server's.
  if (/^pg_/i.test(schema) || schema === 'information_schema')
    throw invalid(`schema must not be one of PostgreSQL's own, got ${JSON.stringify(schema)}`);
  if (
    typeof table !== 'string' ||
    !/^[a-z_][a-z0-9_]*_events$/.test(table) ||
    table.length > MAX_TABLE_LENGTH
  ) {
    throw invalid(
      `table must be at most ${MAX_TABLE_LENGTH} lower-case letters, digits or underscores and end in "_events" ` +
        `(its functions are named after what stands before), e.g. "billing_outbox_events", got ${JSON.stringify(table)}`,
    );
  }
  const prefix = table.slice(0, -'_events'.length);
  const qualified = (name: string): string => `"${schema}"."${prefix}_${name}"`;
  return Object.freeze({ schema, table, prefix, events: qualified('events'), qualified });
}
