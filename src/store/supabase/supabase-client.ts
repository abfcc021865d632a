import { OutboxError } from '../../event/outbox-error.js';

/** What the store needs of a supabase-js client: its shape, not its package. */
export interface SupabaseClientLike {
  schema(name: string): SupabaseSchema;
}

export interface SupabaseSchema {
  rpc(name: string, args?: object): SupabaseCall;
}

export interface SupabaseCall {
  abortSignal(signal: AbortSignal): PromiseLike<SupabaseAnswer>;
}

export interface SupabaseAnswer {
  readonly data: unknown;
  readonly error: SupabaseErrorLike | null;
  /** 0: no answer came at all. */
  readonly status: number;
}

export interface SupabaseErrorLike {
  readonly message?: string;
  /** Those of a violated constraint carry the whole row: never shown, but where there was no answer at all. */
  readonly details?: string | null;
  readonly code?: string;
  readonly hint?: string | null;
}

/** A project, for a client of the outbox's own. */
export interface SupabaseProject {
  /** As in the project's settings: `https://<project>.supabase.co`. */
  readonly url: string;
  /** The secret key (`sb_secret_…`) or the older `service_role` key. It opens everything: never in a browser. */
  readonly serviceRoleKey: string;
}

/** The outbox's own client: without a session to keep, and never led elsewhere by a redirect. */
export async function openClient({
  url,
  serviceRoleKey,
}: SupabaseProject): Promise<SupabaseClientLike> {
  const { createClient } = await loadSupabase();
  return createClient(url, serviceRoleKey, {
    auth: { persistSession: false, autoRefreshToken: false, detectSessionInUrl: false },
    // A redirect turns the POST into a GET, whose answer would pass for success.
    global: { fetch: async (input, init) => fetch(input, { ...init, redirect: 'error' }) },
  });
}

async function loadSupabase(): Promise<typeof import('@supabase/supabase-js')> {
  try {
    return await import('@supabase/supabase-js');
  } catch (cause) {
    throw new OutboxError(
      'SETUP',
      'supabase: { url, serviceRoleKey } needs the package @supabase/supabase-js: ' +
        'run "npm install @supabase/supabase-js", or pass your own client',
      { cause },
    );
  }
}
