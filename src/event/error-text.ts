import { inspect } from 'node:util';

/** `last_error` is for people: long enough for the reason, short enough for a list. In characters. */
export const MAX_ERROR_TEXT = 2_000;

// So many errors of one throw (parts of an AggregateError, causes of causes) are told, each once.
const MAX_PARTS = 20;
const MAX_SIBLINGS = 5;

/**
 * Readable, bounded and storable text for whatever was thrown: an Error, a string, `null`, a symbol, an object
 * whose getters throw. PostgreSQL's text cannot hold NUL, and a lone surrogate has no UTF-8 form.
 */
export function errorText(thrown: unknown, maxLength: number = MAX_ERROR_TEXT): string {
  return storable(describe(thrown, new Set()), maxLength);
}

/** @param told errors that were described already: causes and parts may lead back to them */
function describe(thrown: unknown, told: Set<object>): string {
  try {
    if (typeof thrown === 'string')
      return thrown.trim() === '' ? 'an empty string was thrown' : cut(thrown);
    if (typeof thrown !== 'object' || thrown === null) return `${cut(String(thrown))} was thrown`;
    told.add(thrown);
    return describeObject(thrown, told);
  } catch {
    return 'an object that cannot be described was thrown';
  }
}

// Duck typing and not `instanceof Error`: errors from another realm (a VM context, a worker) are errors too.
function describeObject(thrown: object, told: Set<object>): string {
  const message = read(thrown, 'message');
  if (typeof message !== 'string') return `${cut(describeData(thrown))} was thrown`;

  let text = cut(message);
  const name = read(thrown, 'name');
  if (typeof name === 'string' && name !== '' && name !== 'Error')
    text = text === '' ? cut(name) : `${cut(name)}: ${text}`;
  const code = read(thrown, 'code');
  if (typeof code === 'string' && code !== '' && !text.includes(code))
    text = `${text} (${cut(code)})`.trimStart();
  text += describeReasons(thrown, told);
  return text.trim() === '' ? 'an error without a message was thrown' : text;
}

function describeReasons(thrown: object, told: Set<object>): string {
  const isNews = (reason: unknown): boolean =>
    typeof reason !== 'object' || reason === null || (!told.has(reason) && told.size < MAX_PARTS);
  // Node's failed connections are an AggregateError with an empty message: the reasons are in its parts.
  const parts = listOf(read(thrown, 'errors'))
    .slice(0, MAX_SIBLINGS)
    .flatMap((part) => (isNews(part) ? [describe(part, told)] : []));
  if (parts.length > 0) return `: ${parts.join('; ')}`;
  const cause = read(thrown, 'cause');
  return cause !== undefined && isNews(cause) ? `; caused by ${describe(cause, told)}` : '';
}

function describeData(thrown: object): string {
  try {
    const json = JSON.stringify(thrown) as string | undefined;
    if (json !== undefined) return json;
  } catch {
    // A circle, a BigInt, a getter or a toJSON that throws: `inspect` calls nothing of the object's own.
  }
  return inspect(thrown, {
    customInspect: false,
    depth: 2,
    breakLength: Infinity,
    maxArrayLength: 20,
    maxStringLength: 200,
  });
}

function read(thrown: object, property: string): unknown {
  try {
    return (thrown as Record<string, unknown>)[property];
  } catch {
    return undefined;
  }
}

function listOf(value: unknown): unknown[] {
  try {
    return Array.isArray(value) ? value : [];
  } catch {
    return []; // a revoked proxy
  }
}

/** Never works on more than will be shown. One character too many is kept, so that the end sees that it was cut. */
function cut(text: string): string {
  return text.slice(0, MAX_ERROR_TEXT + 1);
}

function storable(text: string, maxLength: number): string {
  const shown = text.length <= maxLength ? text : `${text.slice(0, maxLength - 1).toWellFormed()}…`;
  return shown.replaceAll('\0', '\uFFFD').toWellFormed();
}
