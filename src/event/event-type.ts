import { invalid } from './outbox-error.js';

/** `event_type` is `varchar(255)`: characters, not bytes. */
export const MAX_EVENT_TYPE_LENGTH = 255;

/** Emitted locally, never stored: tells the application that an event has become a dead letter. */
export const OUTBOX_DEAD_LETTER = 'outbox.dead_letter';

// `error`, `newListener` and `removeListener` mean something else to EventEmitter2.
const RESERVED = new Set(['error', 'newListener', 'removeListener', OUTBOX_DEAD_LETTER]);

/**
 * Refuses an event type that could not be stored, or could not be delivered truthfully.
 * @throws OutboxError `INVALID_ARGUMENT`
 */
export function assertEventType(eventType: unknown): asserts eventType is string {
  const problem = eventTypeProblem(eventType);
  if (problem !== undefined) throw invalid(problem);
}

/** What is wrong with an event type, as a sentence; `undefined` if nothing is. */
export function eventTypeProblem(eventType: unknown): string | undefined {
  if (typeof eventType !== 'string') {
    return `eventType must be a string such as 'quote_request.created', got ${eventType === null ? 'null' : typeof eventType}`;
  }
  if (eventType.trim() === '') return `eventType must not be empty, got ${shown(eventType)}`;
  // Code units first: there are never fewer of them than characters, and they are counted already.
  if (eventType.length > MAX_EVENT_TYPE_LENGTH && [...eventType].length > MAX_EVENT_TYPE_LENGTH) {
    return `eventType must be at most ${MAX_EVENT_TYPE_LENGTH} characters, got ${[...eventType].length}: ${shown(eventType)}`;
  }
  if (eventType.includes('\0') || !eventType.isWellFormed()) {
    return `eventType must not contain NUL or a lone surrogate (PostgreSQL cannot store them), got ${shown(eventType)}`;
  }
  if (RESERVED.has(eventType))
    return `eventType ${shown(eventType)} has a meaning of its own to the emitter: choose another name`;
  // EventEmitter2 keeps its listeners in plain objects, so it would find `Object.prototype.constructor` and call that.
  const inherited = eventType.split('.').find((segment) => segment in Object.prototype);
  if (inherited !== undefined || eventType in Object.prototype) {
    return `eventType ${shown(eventType)} contains a name that every JavaScript object has (${inherited ?? eventType}): choose another`;
  }
  return undefined;
}

function shown(eventType: string): string {
  return JSON.stringify(eventType.length > 60 ? `${eventType.slice(0, 60)}…` : eventType);
}
