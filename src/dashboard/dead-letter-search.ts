import { isEventId } from '../event/event-id.js';
import type { DeadLetterFilter } from '../store/outbox-store.js';
import type { Fields } from './fields.js';

/** What was typed into the form above the list. */
export interface DeadLetterSearch {
  /** An id, or text within event type or error. */
  readonly text: string;
  readonly eventType: string;
  readonly within: Within;
}

/** Set aside within the last… */
export type Within = '' | 'hour' | 'day' | 'week';

const HOUR_MS = 3_600_000;
export const WITHIN_MS: Readonly<Record<Exclude<Within, ''>, number>> = {
  hour: HOUR_MS,
  day: 24 * HOUR_MS,
  week: 7 * 24 * HOUR_MS,
};

export function searchOf(fields: Fields): DeadLetterSearch {
  const within = fields.text('within');
  return {
    text: fields.text('q'),
    eventType: fields.text('type'),
    within: within in WITHIN_MS ? (within as Within) : '',
  };
}

/** As a link carries it. */
export function queryOf({ text, eventType, within }: DeadLetterSearch): Record<string, string> {
  return { q: text, type: eventType, within };
}

/** @param now in milliseconds since 1970 */
export function filterOf(
  { text, eventType, within }: DeadLetterSearch,
  now: number,
): DeadLetterFilter {
  return {
    ...(isEventId(text) ? { ids: [text] } : text !== '' && { matching: text }),
    ...(eventType !== '' && { eventType }),
    ...(within !== '' && { failedAfter: new Date(now - WITHIN_MS[within]) }),
  };
}
