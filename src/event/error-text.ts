/** `last_error` is for people: long enough for the reason, short enough for a list. In characters. */
export const MAX_ERROR_TEXT = 2_000;

/**
 * Readable, bounded and storable text for whatever was thrown: an Error, a string, `null`, a symbol, an object
 * whose getters throw. PostgreSQL's text cannot hold NUL, and a lone surrogate has no UTF-8 form.
 */
export function errorText(thrown: unknown): string {
  return storable(describe(thrown));
}

function describe(thrown: unknown): string {
  try {
    if (typeof thrown === 'string')
      return thrown.trim() === '' ? 'an empty string was thrown' : thrown;
    if (typeof thrown !== 'object' || thrown === null) return `${String(thrown)} was thrown`;
    return describeObject(thrown);
  } catch {
    return 'an object that cannot be described was thrown';
  }
}

// Duck typing and not `instanceof Error`: errors from another realm (a VM context, a worker) are errors too.
function describeObject(thrown: object): string {
  const { name, message, code, cause, errors } = thrown as Record<string, unknown>;
  if (typeof message !== 'string') return `${JSON.stringify(thrown)} was thrown`;

  let text = message;
  if (typeof name === 'string' && name !== '' && name !== 'Error')
    text = text === '' ? name : `${name}: ${text}`;
  if (typeof code === 'string' && code !== '' && !text.includes(code))
    text = `${text} (${code})`.trimStart();
  // Node's failed connections are an AggregateError with an empty message: the reasons are in its parts.
  if (Array.isArray(errors) && errors.length > 0)
    text += `: ${errors.slice(0, 5).map(describe).join('; ')}`;
  else if (cause !== undefined && cause !== thrown) text += `; caused by ${describe(cause)}`;
  return text === '' ? 'an error without a message was thrown' : text;
}

function storable(text: string): string {
  const clean = text.replaceAll('\0', '\uFFFD').toWellFormed();
  if (clean.length <= MAX_ERROR_TEXT) return clean;
  return `${clean.slice(0, MAX_ERROR_TEXT - 1).toWellFormed()}…`;
}
