import type { SupabaseErrorLike } from './supabase-client.js';

const LONGEST_SHOWN = 300;
const IS_THE_URL_RIGHT =
  "is the URL that of the project's API, e.g. https://<project>.supabase.co?";

/**
 * What a failed call has left behind.
 * - `refused`: nothing, and again it would fail again.
 * - `undone`: nothing, and it may succeed the next time.
 * - `unknown`: the answer was lost; the call may have been carried out.
 */
export type Aftermath = 'refused' | 'undone' | 'unknown';

/** A call that failed, in words: with what to do about it, and never with the contents of a row. */
export class SupabaseCallError extends Error {
  override readonly name = 'SupabaseCallError';

  constructor(
    message: string,
    /** HTTP status; 0 if there was no answer. */
    readonly status: number,
    /** SQLSTATE, or PostgREST's own (`PGRST…`); may be empty. */
    readonly code: string,
    readonly aftermath: Aftermath,
  ) {
    super(message);
  }
}

/** A call that supabase-js answered with an error, which it does not throw. */
export function failedCall(
  name: string,
  { message = '', code = '', hint, details }: SupabaseErrorLike,
  status: number,
): SupabaseCallError {
  const said =
    status === 0 ? `no answer: ${readable(message)}${causeIn(details)}` : readable(message);
  const codes = [status !== 0 && `status ${status}`, code].filter(Boolean).join(', ');
  const advice = adviceOn(name, status, code) ?? hint ?? '';
  const parts = [codes && `(${codes})`, advice && `– ${advice}`].filter(Boolean);
  return new SupabaseCallError(
    [`Supabase, ${name}: ${said}`, ...parts].join(' '),
    status,
    code,
    aftermathOf(status, code),
  );
}

/** A call that "succeeded" with something else than its answer: a wrong host, a proxy, an empty 404. */
export function strangeAnswer(name: string, status: number, wanted: string): SupabaseCallError {
  return new SupabaseCallError(
    `Supabase, ${name}: the answer (status ${status}) is not ${wanted} – ${IS_THE_URL_RIGHT}`,
    status,
    '',
    'refused',
  );
}

function aftermathOf(status: number, code: string): Aftermath {
  // Deadlock, lock or statement timeout, serialisation, out of resources: the transaction was rolled back.
  if (/^(40P01|40001|55P03|57014|53...)$/.test(code)) return 'undone';
  // PostgREST has no connection, or does not know (yet) what it is asked for: right after a migration.
  if (/^PGRST(00[023]|202|204)$/.test(code)) return 'undone';
  // The connection broke in the middle.
  if (/^(08...|57P0.|PGRST001)$/.test(code)) return 'unknown';
  if (status === 429) return 'undone';
  return [0, 502, 503, 504, 520, 521, 522, 523, 524].includes(status) ? 'unknown' : 'refused';
}

function adviceOn(name: string, status: number, code: string): string | undefined {
  if (code === 'PGRST202')
    return (
      `the outbox is not there, or too old: run "npx nestjs-outbox-relay migrate" against the project's database ` +
      '(if you just have, the API learns of it within seconds)'
    );
  if (code === 'PGRST106')
    return 'add the schema to the exposed ones in the settings of the Data API, or leave the option schema out';
  if (code === '42501')
    return `the key must be the secret one (service_role), which alone may call ${name}`;
  if (status === 401 || status === 403)
    return "the key was refused: serviceRoleKey must be this project's secret key (sb_secret_…, or service_role)";
  if (status === 0) return 'is the URL right, and does the project run?';
  if (status < 400) return IS_THE_URL_RIGHT;
  return undefined;
}

/** `fetch failed` says nothing; what it was caused by does (refused, unexpected redirect, no such host). */
function causeIn(details: string | null | undefined): string {
  const [, cause = ''] = /^Caused by: (?:Error: )?(.*)$/m.exec(details ?? '') ?? [];
  return cause === '' ? '' : `, ${readable(cause)}`;
}

/** What a gateway in between says is a page of HTML, and of no use in a log. */
function readable(message: string): string {
  const text = message.trim();
  if (text === '') return 'no message';
  if (text.startsWith('<')) return 'an HTML page instead of an answer';
  return text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)}…` : text;
}
