import { invalid } from './outbox-error.js';
import { shown } from './shown.js';

// PostgreSQL reads the ISO form of a Date only for years of four digits, and knows no year 0. Found out there, it
// would cost the caller the transaction.
const EARLIEST = Date.parse('0001-01-01T00:00:00.000Z');
const LATEST = Date.parse('9999-12-31T23:59:59.999Z');

/**
 * Refuses what is no moment, or none that can be stored.
 *
 * @param name what the caller calls it, for the message: `scheduledAt`
 * @throws OutboxError `INVALID_ARGUMENT`
 */
export function assertMoment(name: string, value: unknown): asserts value is Date {
  if (!(value instanceof Date) || Number.isNaN(value.getTime())) {
    const got = value instanceof Date ? 'an invalid one' : shown(value);
    throw invalid(`${name} must be a valid Date, got ${got}`);
  }
  if (value.getTime() < EARLIEST || value.getTime() > LATEST)
    throw invalid(`${name} must lie in the years 1 to 9999, got ${value.toISOString()}`);
}
