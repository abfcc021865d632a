import { isNonRetryable } from '../event/outbox-error.js';
import type { FailureKind } from '../store/sentinel-store.js';

/**
 * Says of a failure whether a retry can mend it. `undefined` leaves it to {@link classifyFailure}.
 */
export type FailureClassifier = (error: unknown) => FailureKind | undefined;

// Node's and undici's: the other side, or the way to it.
const NETWORK_CODES = new Set([
  'EADDRNOTAVAIL',
  'EAI_AGAIN',
  'ECONNABORTED',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTDOWN',
  'EHOSTUNREACH',
  'EMFILE',
  'ENETDOWN',
  'ENETRESET',
  'ENETUNREACH',
  'ENFILE',
  'ENOBUFS',
  'ENOTFOUND',
  'EPIPE',
  'ESOCKETTIMEDOUT',
  'ETIMEDOUT',
  'NR_CLOSED',
]);
const UNDICI_INPUT = new Set(['UND_ERR_INVALID_ARG', 'UND_ERR_NOT_SUPPORTED']);

// Prisma's: cannot reach, timed out, closed, no connection in time, write conflict.
const PRISMA_TRANSIENT = new Set(['P1001', 'P1002', 'P1008', 'P1017', 'P2024', 'P2028', 'P2034']);

// PostgreSQL: connection, transaction rollback, resources, operator intervention, system; lock and object in use.
const SQL_TRANSIENT = /^(08|40|53|55|57|58)/;
// Not supported, cardinality, data, constraints, syntax or access, program limits.
const SQL_DETERMINISTIC = /^(0A|21|22|23|42|44|54)/;
/** Protocol violation: a connection exception by its class, and yet what node-postgres's too many parameters end in. */
const SQL_PROTOCOL_VIOLATION = '08P01';

const HTTP_TRANSIENT = new Set([408, 425, 429]);
// What is wrong with the request stays wrong. Not 401, 403 and 404: a token is renewed, a record appears.
const HTTP_DETERMINISTIC = new Set([400, 405, 406, 410, 411, 413, 414, 415, 422, 431]);

const DETERMINISTIC_NAME =
  /^(TypeError|RangeError|SyntaxError|ReferenceError|EvalError|URIError|ZodError|\$ZodError|ValiError|AssertionError|BadRequestException|\w*ValidationError|\w*ValidationException)$/;
const TRANSIENT_NAME =
  /^(\w*TimeoutError|ConnectionError|ConnectionClosedError|MaxRetriesPerRequestError)$/;

const DETERMINISTIC_MESSAGE =
  /too many (bind |query )?(parameters|variables|arguments)|max number of parameters|MAX_PARAMETERS_EXCEEDED|bind message (has|supplies) \d+ parameter|payload too large|request entity too large/i;
const TRANSIENT_MESSAGE =
  /\btimed?[ -]?out\b|\btimeout\b|socket hang up|fetch failed|network error|too many (connections|clients|requests)|rate limit|connection (is |was )?(unexpectedly )?(closed|terminated|lost|ended|refused|reset)|no answer from the database within/i;

// Where drivers and ORMs keep the error of the server: the first that says something counts.
const INNER = ['cause', 'driverError', 'originalError', 'original', 'parent', 'innerError'];
const DEEPEST = 8;

/**
 * Whether a retry can mend a failure. Network, timeouts, PostgreSQL classes 08, 40, 53, 55, 57, 58 and HTTP 408, 425,
 * 429, 5xx are transient; type errors, validation, PostgreSQL classes 0A, 21, 22, 23, 42, 44, 54, too many parameters and
 * `NonRetryableError` are deterministic; the rest is unknown. Of several failures at once, the worst counts: a retry
 * must mend them all.
 */
export function classifyFailure(error: unknown): FailureKind {
  try {
    return classify(error, DEEPEST);
  } catch {
    return 'unknown'; // a revoked proxy
  }
}

function classify(error: unknown, depth: number): FailureKind {
  if (typeof error === 'string') return byMessage(error) ?? 'unknown';
  if (typeof error !== 'object' || error === null || depth === 0) return 'unknown';
  if (isNonRetryable(error) || read(error, 'code') === 'INVALID_ARGUMENT') return 'deterministic';
  return (
    byCode(error) ??
    byStatus(error) ??
    // Before the name: fetch says "TypeError: fetch failed", and what failed is in its cause.
    byInner(error, depth - 1) ??
    byMessage(text(error, 'message')) ??
    byName(text(error, 'name')) ??
    'unknown'
  );
}

function byCode(error: object): FailureKind | undefined {
  const code = text(error, 'code') || text(error, 'sqlState') || text(read(error, 'meta'), 'code');
  if (NETWORK_CODES.has(code) || PRISMA_TRANSIENT.has(code)) return 'transient';
  if (code.startsWith('UND_ERR_')) return UNDICI_INPUT.has(code) ? 'deterministic' : 'transient';
  if (/^P2\d{3}$/.test(code) && code !== 'P2010') return 'deterministic';
  if (!/^[0-9][0-9A-Z]{4}$/.test(code)) return undefined;
  if (code === SQL_PROTOCOL_VIOLATION || SQL_DETERMINISTIC.test(code)) return 'deterministic';
  return SQL_TRANSIENT.test(code) ? 'transient' : undefined;
}

function byStatus(error: object): FailureKind | undefined {
  const status = [
    read(error, 'status'),
    read(error, 'statusCode'),
    read(read(error, 'response'), 'status'),
    read(read(error, '$metadata'), 'httpStatusCode'),
  ].find((value) => typeof value === 'number' && value >= 400 && value <= 599) as
    number | undefined;
  if (status === undefined) return undefined;
  if (status >= 500 || HTTP_TRANSIENT.has(status)) return 'transient';
  return HTTP_DETERMINISTIC.has(status) ? 'deterministic' : undefined;
}

function byInner(error: object, depth: number): FailureKind | undefined {
  // Several listeners, or the addresses a connection was tried to.
  const parts = [...list(error, 'failures'), ...list(error, 'errors')];
  if (parts.length > 0) return worst(parts.map((part) => classify(part, depth)));
  for (const property of INNER) {
    const inner = read(error, property);
    if (typeof inner !== 'object' || inner === null) continue;
    const kind = classify(inner, depth);
    if (kind !== 'unknown') return kind;
  }
  return undefined;
}

function byMessage(message: string): FailureKind | undefined {
  if (DETERMINISTIC_MESSAGE.test(message)) return 'deterministic';
  return TRANSIENT_MESSAGE.test(message) ? 'transient' : undefined;
}

function byName(name: string): FailureKind | undefined {
  if (DETERMINISTIC_NAME.test(name)) return 'deterministic';
  return TRANSIENT_NAME.test(name) ? 'transient' : undefined;
}

function worst(kinds: readonly FailureKind[]): FailureKind | undefined {
  return (['deterministic', 'unknown', 'transient'] as const).find((kind) => kinds.includes(kind));
}

function list(value: object, property: string): unknown[] {
  const found = read(value, property);
  if (!Array.isArray(found)) return [];
  // A failure of a listener carries what was thrown.
  return found.map((part: unknown) =>
    typeof part === 'object' && part !== null && 'listener' in part && 'error' in part
      ? part.error
      : part,
  );
}

function text(value: unknown, property: string): string {
  const found = read(value, property);
  return typeof found === 'string' ? found : '';
}

/** A getter of a foreign error may throw. */
function read(value: unknown, property: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  try {
    return (value as Record<string, unknown>)[property];
  } catch {
    return undefined;
  }
}
