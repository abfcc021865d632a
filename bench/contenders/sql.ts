import type { Backlog } from './contender.ts';
import { FILLER } from './contender.ts';

/** When event number n was due: as if they had come in at 100 a second. */
export function dueSql(count: number): string {
  return `now() - (${count} - n) * interval '10 milliseconds'`;
}

/** `SELECT … AS payload` for a backlog: numbers of events beside their payloads. */
export function payloadsSql({ count, slowEvery }: Backlog): string {
  const slow = slowEvery === 0 ? 'false' : `g % ${slowEvery} = ${1 % slowEvery}`;
  return `SELECT g AS n, jsonb_build_object('n', g, 'slow', ${slow}, 'text', '${FILLER}') AS payload
          FROM generate_series(1, ${count}) AS g`;
}

/** The business data that events speak of. */
export const BUSINESS_TABLE =
  'CREATE TABLE IF NOT EXISTS orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, note text NOT NULL)';
export const BUSINESS_INSERT = 'INSERT INTO orders (note) VALUES ($1)';
