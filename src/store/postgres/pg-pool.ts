import { setTimeout as sleep } from 'node:timers/promises';

const END_WITHIN_MS = 3_000;

/** What the store needs of a `pg` pool: its shape, not its package. */
export interface PgPool {
  query(config: PgQuery): Promise<{ rows: unknown[] }>;
  connect(): Promise<PgClient>;
}

export interface PgClient {
  query(config: PgQuery | string): Promise<{ rows: unknown[] }>;
  release(destroy?: Error | boolean): void;
  on?(event: 'error', listener: () => void): unknown;
  off?(event: 'error', listener: () => void): unknown;
}

export interface PgQuery {
  readonly text: string;
  readonly values?: unknown[];
  readonly query_timeout?: number;
  readonly types?: { getTypeParser(...args: never[]): (value: string) => unknown };
}

// A statement of the store takes milliseconds. One that is not answered for so long has lost its connection.
const ANSWER_WITHIN_MS = 15_000;

// Including the wait for a connection, for which the application's pool may know no limit.
const GIVE_UP_AFTER_MS = 30_000;

/**
 * Asks the database, and does not wait for ever: when the network swallows everything, node-postgres by itself would
 * notice after a quarter of an hour. Not by way of `statement_timeout`, which a pooler refuses at connect.
 *
 * @param onLate what is to be done about an answer that comes after the wait was given up
 */
export async function ask(
  db: { query(config: PgQuery): Promise<{ rows: unknown[] }> },
  query: PgQuery,
  onLate: (rows: unknown[]) => void = () => {},
): Promise<{ rows: unknown[] }> {
  const answer = db.query({ ...query, query_timeout: ANSWER_WITHIN_MS });
  let timer: NodeJS.Timeout | undefined;
  const givenUp = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      answer.then(({ rows }) => onLate(rows)).catch(() => {});
      reject(new Error(`no answer from the database within ${GIVE_UP_AFTER_MS} ms`));
    }, GIVE_UP_AFTER_MS).unref();
  });
  try {
    return await Promise.race([answer, givenUp]);
  } finally {
    clearTimeout(timer);
  }
}

/** Waits for a connection or a pool to end, but not for long: the other side may be out of reach. Never rejects. */
export async function ended(ending: Promise<unknown>): Promise<void> {
  const timeout = new AbortController();
  await Promise.race([
    ending.catch(() => {}),
    sleep(END_WITHIN_MS, undefined, { signal: timeout.signal }).catch(() => {}),
  ]);
  timeout.abort();
}

/**
 * Leaves every column as the text the server sent. The application may have installed type parsers of its own in
 * the pool it lends us; and payloads are parsed only once, when they are needed.
 */
export const AS_TEXT = { getTypeParser: () => (value: string) => value };
