import { isEventId } from '../event/event-id.js';
import { invalid } from '../event/outbox-error.js';
import { shown } from '../event/shown.js';

// As PostgreSQL writes a time in UTC, to the microsecond: a Date would drop those, and skip or repeat rows.
const CURSOR =
  /^\["(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:\+00:00|Z))","([0-9a-f-]{36})"\]$/;

/** Where a page ended: the time that gives the order, as text, and the id of its last row. */
export function writeCursor(time: string, id: string): string {
  return Buffer.from(JSON.stringify([time, id])).toString('base64url');
}

/** @throws OutboxError `INVALID_ARGUMENT` if it was not made by {@link writeCursor} */
export function readCursor(
  cursor: string | undefined,
): readonly [time: string | null, id: string | null] {
  if (cursor === undefined) return [null, null];
  const text = typeof cursor === 'string' ? Buffer.from(cursor, 'base64url').toString() : '';
  const [, time, id] = CURSOR.exec(text) ?? [];
  if (time !== undefined && isEventId(id) && !Number.isNaN(Date.parse(time))) return [time, id];
  throw invalid(`after must be the "next" of an earlier page, got ${shown(cursor)}`);
}

const DEFAULT_PAGE = 50;
const LARGEST_PAGE = 500;

/** The size of a page, 50 unless it was said. @throws OutboxError `INVALID_ARGUMENT` outside of 1 to 500 */
export function pageSize(limit: number = DEFAULT_PAGE): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= LARGEST_PAGE) return limit;
  throw invalid(`limit must be a whole number from 1 to ${LARGEST_PAGE}, got ${String(limit)}`);
}
