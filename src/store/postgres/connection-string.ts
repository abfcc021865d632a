import { invalid } from '../../event/outbox-error.js';

const EXAMPLE = 'postgres://user:password@host:5432/database';

/**
 * What node-postgres reads as it is meant: a URL, or the path of a Unix socket. It takes any text, and makes of
 * `my-database` or of `http://…` a connection to some other place; libpq's `host=… dbname=…` it does not know.
 */
const POSTGRES_URL = /^(postgres(ql)?:\/\/|socket:|\/)/;

export function isConnectionString(value: unknown): value is string {
  return typeof value === 'string' && POSTGRES_URL.test(value) && isReadable(value);
}

/**
 * @param name what the value is called where it was given, e.g. `connectionString`
 * @throws OutboxError `INVALID_ARGUMENT` that does not show the value: it may hold a password
 */
export function assertConnectionString(name: string, value: unknown): asserts value is string {
  if (isConnectionString(value)) return;
  throw invalid(
    `${name} must be a PostgreSQL URL such as ${EXAMPLE}, got ${shownConnectionString(value)}`,
  );
}

/** What was given instead, without what may be secret in it. */
export function shownConnectionString(value: unknown): string {
  if (typeof value !== 'string') return value === null ? 'null' : typeof value;
  if (value.trim() === '') return 'an empty string';
  if (POSTGRES_URL.test(value))
    return 'a URL that cannot be read (is the port a number? in a password, write @ as %40, / as %2F, # as %23)';
  const [, scheme] = /^([a-z][a-z0-9+.-]{0,20}):\/\//i.exec(value) ?? [];
  if (scheme !== undefined) return `a URL that begins with ${scheme}://`;
  if (/^\w+\s*=/.test(value)) return 'a list of keyword=value, which node-postgres does not read';
  return 'a text that is no URL';
}

/** Every password in it, as it is written and as it is meant. */
export function passwordsIn(connectionString: string): string[] {
  const [, written] = /^[^/]*\/\/[^/?#]*?:([^/?#]*)@/.exec(connectionString) ?? [];
  // Also of a URL that cannot be read, e.g. with an unescaped slash in the password.
  const [, rough] = /^[^/]*\/\/[^:@]*:(.*)@/.exec(connectionString) ?? [];
  const inQuery = [...connectionString.matchAll(/[?&](?:ssl)?pass(?:word|phrase)?=([^&#]*)/gi)].map(
    ([, value]) => value,
  );
  return [written, rough, ...inQuery].flatMap((value) =>
    value === undefined || value === '' ? [] : [value, decoded(value)],
  );
}

/** As node-postgres does: with a host in between where there is none. */
function isReadable(value: string): boolean {
  if (value.startsWith('/')) return true;
  return URL.canParse(value) || URL.canParse(value.replace('@/', '@nowhere/'));
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
