import { errorText } from './error-text.js';
import { invalid, OutboxError } from './outbox-error.js';

/** What an event carries: a plain JSON object. */
export type OutboxPayload = Record<string, unknown>;

/** 1 MiB of JSON: an event is a message, not a place to keep files. */
export const DEFAULT_MAX_PAYLOAD_BYTES = 1_048_576;

// PostgreSQL's JSON parser gives up at a stack depth of some thousand levels; so does JSON.stringify.
const MAX_DEPTH = 500;
// The message names the culprit; a path of a thousand levels would bury it.
const MAX_SHOWN_PATH = 120;

// The delivery adds `_outbox`, and the in-memory fallback `_outboxFailed`: a user's own would be overwritten.
const RESERVED_KEYS = ['_outbox', '_outboxFailed'];

/**
 * A copy of `value` that holds exactly what jsonb will hold: dates as ISO strings, `toJSON` applied, `undefined`
 * properties left out as `JSON.stringify` does. Whatever would be stored as something else than it is, is refused,
 * with the path to the culprit.
 *
 * @param field what the caller calls it, for the message: `payload` or `metadata`
 * @throws OutboxError `INVALID_ARGUMENT`
 */
export function toStorable(field: string, value: unknown): OutboxPayload {
  const copy = copyValue(value, { path: field, key: '' }, new Set());
  if (typeof copy !== 'object' || copy === null || Array.isArray(copy)) {
    throw invalid(
      `${field} must be a plain JSON object, got ${kindOf(value)}: wrap it, e.g. { items: … }`,
    );
  }
  return copy as OutboxPayload;
}

/**
 * The JSON text of a payload, checked against the size limit in bytes.
 * @throws OutboxError `INVALID_ARGUMENT`
 */
export function serializePayload(payload: OutboxPayload, maxBytes: number): string {
  const json = JSON.stringify(payload);
  const bytes = Buffer.byteLength(json);
  if (bytes > maxBytes) {
    throw invalid(
      `payload is ${bytes} bytes of JSON, more than the ${maxBytes} allowed (option maxPayloadBytes): ` +
        'store the data elsewhere and send its id',
    );
  }
  return json;
}

/** The delivery's and the fallback's own keys are refused at the top of a payload. */
export function assertNoReservedKeys(payload: OutboxPayload): void {
  const taken = RESERVED_KEYS.find((key) => Object.hasOwn(payload, key));
  if (taken !== undefined)
    throw invalid(`payload.${taken} is set by the outbox itself: rename your key`);
}

/** Where a value is: `payload.items[2].price`, and `price` as its `toJSON` is told. */
interface Place {
  readonly path: string;
  readonly key: string;
}

function copyValue(value: unknown, place: Place, ancestors: Set<object>): unknown {
  switch (typeof value) {
    case 'string':
      return copyString(value, place.path);
    case 'boolean':
      return value;
    case 'number':
      if (!Number.isFinite(value))
        throw refused(place.path, `is ${value}, which JSON cannot hold: use null or a string`);
      return value === 0 ? 0 : value; // JSON knows no -0
    case 'object':
      return value === null ? null : copyObject(value, place, ancestors);
    case 'bigint':
      throw refused(place.path, `is a BigInt (${value}n), which JSON cannot hold: use a string`);
    default:
      throw refused(
        place.path,
        `is ${kindOf(value)}, which JSON cannot hold: leave it out or use null`,
      );
  }
}

function copyString(value: string, path: string): string {
  if (value.includes('\0'))
    throw refused(path, 'contains NUL (U+0000), which PostgreSQL cannot store: remove it');
  if (!value.isWellFormed()) {
    throw refused(
      path,
      'contains a lone surrogate (half of a character, e.g. a cut emoji): mend it with toWellFormed()',
    );
  }
  return value;
}

function copyObject(value: object, place: Place, ancestors: Set<object>): unknown {
  if (ancestors.has(value))
    throw refused(place.path, 'refers back to an object that contains it: break the circle');
  if (ancestors.size >= MAX_DEPTH)
    throw refused(place.path, `is nested deeper than ${MAX_DEPTH} levels: flatten it`);

  ancestors.add(value);
  try {
    return copyByKind(value, place, ancestors);
  } catch (error) {
    if (error instanceof OutboxError) throw error;
    // A getter, a toJSON or a proxy of the caller's.
    throw refused(place.path, `could not be read: ${errorText(error)}`, { cause: error });
  } finally {
    ancestors.delete(value);
  }
}

function copyByKind(value: object, place: Place, ancestors: Set<object>): unknown {
  if (Array.isArray(value)) return copyArray(value, place.path, ancestors);
  const tag = tagOf(value);
  // A Buffer has a toJSON too, but bytes turned into a list of numbers are never what was meant.
  if (ArrayBuffer.isView(value))
    throw refused(place.path, `is binary data (${tag}): use a base64 string`);
  // By its tag and not by `instanceof`: one from another realm (a VM context) would become null.
  if (tag === 'Date' && Number.isNaN(Number(value)))
    throw refused(place.path, 'is an invalid Date: use null');
  if ('toJSON' in value && typeof value.toJSON === 'function')
    return copyJson(value.toJSON(place.key), value, place, ancestors);
  if (tag !== 'Object') {
    throw refused(
      place.path,
      `is ${withArticle(tag)}, which JSON would store as {}: convert it to an object or array`,
    );
  }
  return copyProperties(value, place.path, ancestors);
}

/** What a `toJSON` gave. Often the object itself or a copy of it, with the same `toJSON`: that is not asked again. */
function copyJson(json: unknown, source: object, place: Place, ancestors: Set<object>): unknown {
  const isAnswered =
    json === source ||
    (typeof json === 'object' &&
      json !== null &&
      (json as { toJSON?: unknown }).toJSON === (source as { toJSON?: unknown }).toJSON);
  if (isAnswered) return copyProperties(json, place.path, ancestors);
  return copyValue(json, place, ancestors);
}

function copyArray(value: readonly unknown[], path: string, ancestors: Set<object>): unknown[] {
  // Array.from visits holes as well; JSON would turn them into null without a word.
  return Array.from(value, (item, index) =>
    copyValue(item, { path: `${path}[${index}]`, key: String(index) }, ancestors),
  );
}

function copyProperties(value: object, path: string, ancestors: Set<object>): object {
  const symbol = Object.getOwnPropertySymbols(value).find((key) =>
    Object.prototype.propertyIsEnumerable.call(value, key),
  );
  if (symbol !== undefined) {
    throw refused(path, `has a symbol key (${String(symbol)}), which JSON drops: use a string key`);
  }

  const copy = {};
  for (const [key, item] of Object.entries(value)) {
    copyString(key, `a key of ${path}`);
    const isToJson = key === 'toJSON' && typeof item === 'function';
    if (item === undefined || isToJson) continue;
    // Not `copy[key] = …`: assigning to `__proto__` would change the copy's prototype instead of adding a key.
    Object.defineProperty(copy, key, {
      value: copyValue(item, { path: `${path}.${key}`, key }, ancestors),
      enumerable: true,
      writable: true,
      configurable: true,
    });
  }
  return copy;
}

function refused(path: string, problem: string, options?: ErrorOptions): OutboxError {
  const shown = path.length > MAX_SHOWN_PATH ? `${path.slice(0, MAX_SHOWN_PATH)}…` : path;
  return invalid(`${shown} ${problem}`, options);
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value !== 'object') return withArticle(typeof value);
  const tag = tagOf(value);
  // Reached only by a toJSON: a plain object is what is asked for.
  return tag === 'Object' ? 'an object whose toJSON gives none' : withArticle(tag);
}

function tagOf(value: object): string {
  return Object.prototype.toString.call(value).slice(8, -1);
}

function withArticle(noun: string): string {
  return `${/^[AEIOU]/i.test(noun) ? 'an' : 'a'} ${noun}`;
}
