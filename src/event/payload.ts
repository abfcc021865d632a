import { invalid } from './outbox-error.js';

/** What an event carries: a plain JSON object. */
export type OutboxPayload = Record<string, unknown>;

/** 1 MiB of JSON: an event is a message, not a place to keep files. */
export const DEFAULT_MAX_PAYLOAD_BYTES = 1_048_576;

// PostgreSQL's JSON parser gives up at a stack depth of some thousand levels; so does JSON.stringify.
const MAX_DEPTH = 500;

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
  const copy = copyValue(value, field, new Set());
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

function copyValue(value: unknown, path: string, ancestors: Set<object>): unknown {
  switch (typeof value) {
    case 'string':
      return copyString(value, path);
    case 'boolean':
      return value;
    case 'number':
      if (!Number.isFinite(value))
        throw invalid(`${path} is ${value}, which JSON cannot hold: use null or a string`);
      return value;
    case 'object':
      return value === null ? null : copyObject(value, path, ancestors);
    case 'bigint':
      throw invalid(`${path} is a BigInt (${value}n), which JSON cannot hold: use a string`);
    default:
      throw invalid(
        `${path} is ${kindOf(value)}, which JSON cannot hold: leave it out or use null`,
      );
  }
}

function copyString(value: string, path: string): string {
  if (value.includes('\0'))
    throw invalid(`${path} contains NUL (U+0000), which PostgreSQL cannot store: remove it`);
  if (!value.isWellFormed()) {
    throw invalid(
      `${path} contains a lone surrogate (half of a character, e.g. a cut emoji): mend it with toWellFormed()`,
    );
  }
  return value;
}

function copyObject(value: object, path: string, ancestors: Set<object>): unknown {
  if (ancestors.has(value))
    throw invalid(`${path} refers back to an object that contains it: break the circle`);
  if (ancestors.size >= MAX_DEPTH)
    throw invalid(`${path.slice(0, 80)}… is nested deeper than ${MAX_DEPTH} levels: flatten it`);
  if (value instanceof Date && Number.isNaN(value.getTime()))
    throw invalid(`${path} is an invalid Date: use null`);

  ancestors.add(value);
  try {
    if (Array.isArray(value)) return copyArray(value, path, ancestors);
    const tag = Object.prototype.toString.call(value).slice(8, -1);
    // A Buffer has a toJSON too, but bytes turned into a list of numbers are never what was meant.
    if (ArrayBuffer.isView(value))
      throw invalid(`${path} is binary data (${tag}): use a base64 string`);
    if ('toJSON' in value && typeof value.toJSON === 'function') {
      return copyValue((value.toJSON as (key: string) => unknown)(path), path, ancestors);
    }
    if (tag !== 'Object')
      throw invalid(
        `${path} is a ${tag}, which JSON would store as {}: convert it to an object or array`,
      );
    return copyProperties(value, path, ancestors);
  } finally {
    ancestors.delete(value);
  }
}

function copyArray(value: readonly unknown[], path: string, ancestors: Set<object>): unknown[] {
  // Array.from visits holes as well; JSON would turn them into null without a word.
  return Array.from(value, (item, index) => copyValue(item, `${path}[${index}]`, ancestors));
}

function copyProperties(value: object, path: string, ancestors: Set<object>): object {
  const symbol = Object.getOwnPropertySymbols(value).find((key) =>
    Object.prototype.propertyIsEnumerable.call(value, key),
  );
  if (symbol !== undefined)
    throw invalid(
      `${path} has a symbol key (${String(symbol)}), which JSON drops: use a string key`,
    );

  const copy = {};
  for (const [key, item] of Object.entries(value)) {
    copyString(key, `a key of ${path}`);
    if (item === undefined) continue;
    // Not `copy[key] = …`: assigning to `__proto__` would change the copy's prototype instead of adding a key.
    Object.defineProperty(copy, key, {
      value: copyValue(item, `${path}.${key}`, ancestors),
      enumerable: true,
      writable: true,
      configurable: true,
    });
  }
  return copy;
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return 'an array';
  return `a ${typeof value}`;
}
