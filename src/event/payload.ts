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
  const copy = copyValue(value, { key: field, above: undefined }, []);
  if (typeof copy !== 'object' || copy === null || Array.isArray(copy)) {
    throw invalid(
      `${field} must be a plain JSON object, got ${kindOf(value)}: wrap it, e.g. { items: … }`,
    );
  }
  return copy as OutboxPayload;
}

/**
 * Refuses a payload whose JSON is longer than `maxBytes`.
 * @param payload what {@link toStorable} gave
 * @throws OutboxError `INVALID_ARGUMENT`
 */
export function assertPayloadSize(payload: OutboxPayload, maxBytes: number): void {
  // Most payloads are so much smaller that nobody needs to know how small: JSON is made once, by the store.
  if (mostBytes(payload) <= maxBytes) return;
  const bytes = Buffer.byteLength(JSON.stringify(payload));
  if (bytes <= maxBytes) return;
  throw invalid(
    `payload is ${bytes} bytes of JSON, more than the ${maxBytes} allowed (option maxPayloadBytes): ` +
      'store the data elsewhere and send its id',
  );
}

/** What JSON of this value takes at the most. `value` is what {@link toStorable} gave. */
function mostBytes(value: unknown): number {
  if (typeof value === 'string') return mostBytesOfText(value);
  // The longest number is -2.2250738585072014e-308.
  if (typeof value !== 'object' || value === null) return 24;
  let most = 2;
  for (const [key, item] of Object.entries(value))
    most += mostBytesOfText(key) + mostBytes(item) + 2;
  return most;
}

// A control character is written as \u001f; in UTF-8, no other code unit takes more than three bytes.
function mostBytesOfText(text: string): number {
  return 6 * text.length + 2;
}

/** The delivery's and the fallback's own keys are refused at the top of a payload. */
export function assertNoReservedKeys(payload: OutboxPayload): void {
  const taken = RESERVED_KEYS.find((key) => Object.hasOwn(payload, key));
  if (taken !== undefined)
    throw invalid(`payload.${taken} is set by the outbox itself: rename your key`);
}

/** Where a value is, from the inside out: `payload.items[2].price` is put together only for a message. */
interface Place {
  /** The name of a property, the index of an element; at the top, what the caller calls it. */
  readonly key: string | number;
  readonly above: Place | undefined;
}

function pathOf({ key, above }: Place): string {
  if (above === undefined) return String(key);
  return pathOf(above) + (typeof key === 'number' ? `[${key}]` : `.${key}`);
}

function copyValue(value: unknown, place: Place, ancestors: object[]): unknown {
  switch (typeof value) {
    case 'string':
      return copyString(value, place);
    case 'boolean':
      return value;
    case 'number':
      if (!Number.isFinite(value))
        throw refused(place, `is ${value}, which JSON cannot hold: use null or a string`);
      return value === 0 ? 0 : value; // JSON knows no -0
    case 'object':
      return value === null ? null : copyObject(value, place, ancestors);
    case 'bigint':
      throw refused(place, `is a BigInt (${value}n), which JSON cannot hold: use a string`);
    default:
      throw refused(place, `is ${kindOf(value)}, which JSON cannot hold: leave it out or use null`);
  }
}

function copyString(value: string, place: Place): string {
  const problem = textProblem(value);
  if (problem !== undefined) throw refused(place, problem);
  return value;
}

function textProblem(value: string): string | undefined {
  if (value.includes('\0'))
    return 'contains NUL (U+0000), which PostgreSQL cannot store: remove it';
  if (!value.isWellFormed()) {
    return 'contains a lone surrogate (half of a character, e.g. a cut emoji): mend it with toWellFormed()';
  }
  return undefined;
}

function copyObject(value: object, place: Place, ancestors: object[]): unknown {
  if (ancestors.includes(value))
    throw refused(place, 'refers back to an object that contains it: break the circle');
  if (ancestors.length >= MAX_DEPTH)
    throw refused(place, `is nested deeper than ${MAX_DEPTH} levels: flatten it`);

  ancestors.push(value);
  try {
    return copyByKind(value, place, ancestors);
  } catch (error) {
    if (error instanceof OutboxError) throw error;
    // A getter, a toJSON or a proxy of the caller's.
    throw refused(place, `could not be read: ${errorText(error)}`, { cause: error });
  } finally {
    ancestors.pop();
  }
}

function copyByKind(value: object, place: Place, ancestors: object[]): unknown {
  if (Array.isArray(value)) return copyArray(value, place, ancestors);
  const tag = tagOf(value);
  // A Buffer has a toJSON too, but bytes turned into a list of numbers are never what was meant.
  if (ArrayBuffer.isView(value))
    throw refused(place, `is binary data (${tag}): use a base64 string`);
  // By its tag and not by `instanceof`: one from another realm (a VM context) would become null.
  if (tag === 'Date' && Number.isNaN(Number(value)))
    throw refused(place, 'is an invalid Date: use null');
  if ('toJSON' in value && typeof value.toJSON === 'function')
    return copyJson(
      value.toJSON(place.above === undefined ? '' : String(place.key)),
      value,
      place,
      ancestors,
    );
  if (tag !== 'Object') {
    throw refused(
      place,
      `is ${withArticle(tag)}, which JSON would store as {}: convert it to an object or array`,
    );
  }
  return copyProperties(value, place, ancestors);
}

/** What a `toJSON` gave. Often the object itself or a copy of it, with the same `toJSON`: that is not asked again. */
function copyJson(json: unknown, source: object, place: Place, ancestors: object[]): unknown {
  const isAnswered =
    json === source ||
    (typeof json === 'object' &&
      json !== null &&
      (json as { toJSON?: unknown }).toJSON === (source as { toJSON?: unknown }).toJSON);
  if (isAnswered) return copyProperties(json, place, ancestors);
  return copyValue(json, place, ancestors);
}

function copyArray(value: readonly unknown[], place: Place, ancestors: object[]): unknown[] {
  // Array.from visits holes as well; JSON would turn them into null without a word.
  return Array.from(value, (item, index) =>
    copyValue(item, { key: index, above: place }, ancestors),
  );
}

function copyProperties(value: object, place: Place, ancestors: object[]): object {
  for (const symbol of Object.getOwnPropertySymbols(value)) {
    if (Object.prototype.propertyIsEnumerable.call(value, symbol))
      throw refused(
        place,
        `has a symbol key (${String(symbol)}), which JSON drops: use a string key`,
      );
  }

  const copy: Record<string, unknown> = {};
  for (const [key, item] of Object.entries(value)) {
    const problem = textProblem(key);
    if (problem !== undefined) throw refusedAt(`a key of ${pathOf(place)}`, problem);
    const isToJson = key === 'toJSON' && typeof item === 'function';
    if (item === undefined || isToJson) continue;
    const stored = copyValue(item, { key, above: place }, ancestors);
    // Assigning to `__proto__` would change the copy's prototype instead of adding a key.
    if (key === '__proto__') Object.defineProperty(copy, key, { ...OWN, value: stored });
    else copy[key] = stored;
  }
  return copy;
}

const OWN = { enumerable: true, writable: true, configurable: true };

function refused(place: Place, problem: string, options?: ErrorOptions): OutboxError {
  return refusedAt(pathOf(place), problem, options);
}

function refusedAt(path: string, problem: string, options?: ErrorOptions): OutboxError {
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
