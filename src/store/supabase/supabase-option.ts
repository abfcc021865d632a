import { assertKnownKeys } from '../../event/known-keys.js';
import { invalid } from '../../event/outbox-error.js';

/**
 * Refuses what is neither a client nor a project. The key is never shown.
 * @throws OutboxError `INVALID_ARGUMENT`
 */
export function assertSupabase(given: unknown): void {
  if (typeof given !== 'object' || given === null) {
    throw invalid(
      `supabase must be { url, serviceRoleKey } or a supabase-js client, got ${given === null ? 'null' : typeof given}`,
    );
  }
  if ('schema' in given && typeof given.schema === 'function') {
    // supabase-js keeps the key it was made with.
    if ('supabaseKey' in given) assertNotPublic('supabase was made with', given.supabaseKey);
    return;
  }
  assertKnownKeys('supabase.', given, ['url', 'serviceRoleKey']);
  const { url, serviceRoleKey } = given as { url?: unknown; serviceRoleKey?: unknown };
  assertUrl(url);
  assertSecretKey(serviceRoleKey);
}

function assertUrl(url: unknown): void {
  const parsed = typeof url === 'string' && URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol)) {
    throw invalid(
      'supabase.url must be the URL of the project, e.g. https://<project>.supabase.co, got ' +
        `${typeof url === 'string' ? 'another text' : typeof url} (is SUPABASE_URL set?)`,
    );
  }
  if (/\/rest\/v1\/?$/.test(parsed.pathname)) {
    throw invalid('supabase.url must not end in /rest/v1: supabase-js adds that itself');
  }
}

/** The public keys are refused: with them each call would fail, one by one and later. */
function assertSecretKey(key: unknown): void {
  if (typeof key !== 'string' || key.trim() === '') {
    throw invalid(
      `supabase.serviceRoleKey must be the project's secret key, got ${key === '' ? 'an empty string' : typeof key} ` +
        '(is SUPABASE_SERVICE_ROLE_KEY set?)',
    );
  }
  assertNotPublic('supabase.serviceRoleKey is', key);
}

function assertNotPublic(what: string, key: unknown): void {
  if (typeof key !== 'string') return;
  const role = key.startsWith('sb_publishable_') ? 'publishable' : roleIn(key);
  if (role === undefined || role === 'service_role') return;
  throw invalid(
    `${what} the ${role} key, which everybody may know: it must be the secret one ` +
      '(sb_secret_…, or the older service_role)',
  );
}

/** The role that a key in the older form, a JSON web token, speaks for. */
function roleIn(key: string): string | undefined {
  const [, claims = ''] = key.split('.');
  try {
    const { role } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { role?: unknown };
    return typeof role === 'string' ? role : undefined;
  } catch {
    return undefined;
  }
}
