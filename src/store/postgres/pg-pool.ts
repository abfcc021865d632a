/** What the store needs of a `pg` pool: its shape, not its package. */
export interface PgPool {
  query(config: PgQuery): Promise<{ rows: unknown[] }>;
  connect(): Promise<PgClient>;
}

export interface PgClient {
  query(config: PgQuery | string): Promise<{ rows: unknown[] }>;
  release(destroy?: Error | boolean): void;
}

export interface PgQuery {
  readonly text: string;
  readonly values?: unknown[];
  readonly types?: { getTypeParser(...args: never[]): (value: string) => unknown };
}

/**
 * Leaves every column as the text the server sent. The application may have installed type parsers of its own in
 * the pool it lends us; and payloads are parsed only once, when they are needed.
 */
export const AS_TEXT = { getTypeParser: () => (value: string) => value };
