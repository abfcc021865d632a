-- Sentinels: the "done" marks of work that is done once, who is at it, and how it failed.
--
-- If the application connects as a role that does not own the tables, give it (beside what 003 names):
--   GRANT SELECT, INSERT, UPDATE ON public.outbox_sentinels TO app;
--   GRANT EXECUTE ON FUNCTION public.outbox_sentinel_claim(text, text, boolean, uuid, float8) TO app;
--   GRANT EXECUTE ON FUNCTION public.outbox_sentinel_renew(text, text, uuid, float8) TO app;
--   GRANT EXECUTE ON FUNCTION public.outbox_sentinel_stamp(text, text, uuid, boolean) TO app;
--   GRANT EXECUTE ON FUNCTION public.outbox_sentinel_fail(text, text, uuid, integer, integer, text, text, float8) TO app;
--   GRANT EXECUTE ON FUNCTION public.outbox_sentinel_release(text, text, uuid) TO app;
--   GRANT EXECUTE ON FUNCTION public.outbox_sentinel_reopen(text, text) TO app;
--   GRANT EXECUTE ON FUNCTION public.outbox_sentinel_list(text, boolean, integer) TO app;
--   GRANT EXECUTE ON FUNCTION public.outbox_sentinel_stats() TO app;
--   CREATE POLICY app_uses_sentinels ON public.outbox_sentinels TO app USING (true) WITH CHECK (true);
-- Runs as it lies, in one transaction, twice without harm.

CREATE TABLE IF NOT EXISTS public.outbox_sentinels (
  key             text        NOT NULL,
  version         text        NOT NULL,
  created_at      timestamptz NOT NULL DEFAULT now(),
  stamped_at      timestamptz,
  lease_token     uuid,
  leased_until    timestamptz,
  failures        integer     NOT NULL DEFAULT 0,
  same_failures   integer     NOT NULL DEFAULT 0,
  last_error      text,
  last_error_kind text,
  failed_at       timestamptz,
  closed_at       timestamptz,
  closed_until    timestamptz,
  closings        integer     NOT NULL DEFAULT 0,

  CONSTRAINT outbox_sentinels_pkey
    PRIMARY KEY (key, version),
  CONSTRAINT outbox_sentinels_lease_check
    CHECK ((lease_token IS NULL) = (leased_until IS NULL)),
  CONSTRAINT outbox_sentinels_closed_check
    CHECK ((closed_at IS NULL) = (closed_until IS NULL)),
  CONSTRAINT outbox_sentinels_kind_check
    CHECK (last_error_kind IN ('transient', 'deterministic', 'unknown'))
);

COMMENT ON TABLE  public.outbox_sentinels                 IS 'Sentinels: the "done" marks of work that is done once per key and version.';
COMMENT ON COLUMN public.outbox_sentinels.stamped_at      IS 'When it was done; NULL as long as it is not, or if the mark is the application''s own.';
COMMENT ON COLUMN public.outbox_sentinels.lease_token     IS 'Who is at it: without this token nothing about it can be changed.';
COMMENT ON COLUMN public.outbox_sentinels.failures        IS 'Failures in a row.';
COMMENT ON COLUMN public.outbox_sentinels.same_failures   IS 'How many of them, counted from the last, had the same message.';
COMMENT ON COLUMN public.outbox_sentinels.closed_at       IS 'The gate is closed since then, or was and is being tried again.';
COMMENT ON COLUMN public.outbox_sentinels.closed_until    IS 'Until then every call fails at once.';
COMMENT ON COLUMN public.outbox_sentinels.closings        IS 'How often in a row it was closed: each time for longer.';

-- What is failing: lists and stats.
CREATE INDEX IF NOT EXISTS idx_outbox_sentinels_failing
  ON public.outbox_sentinels (failed_at)
  WHERE failures > 0;

-- Takes the lease of a key, if its work is to be done and nobody is at it, in whatever version.
--   heed_stamp  false: the mark is the application's own, it looks itself
--   returns     answer: claimed | stamped | running | closed; abandoned: whoever was at it before has died of it;
--               sentinel: the row as it was before
CREATE OR REPLACE FUNCTION public.outbox_sentinel_claim(
  key text, version text, heed_stamp boolean, lease_token uuid, lease_ms float8)
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
AS $outbox$
#variable_conflict use_variable
DECLARE
  sentinel  public.outbox_sentinels%ROWTYPE;
  moment    timestamptz;
  answer    text;
  abandoned boolean := false;
BEGIN
  -- Nearly every call finds the mark: no lock for that.
  SELECT * INTO sentinel FROM public.outbox_sentinels AS known WHERE known.key = key AND known.version = version;
  IF heed_stamp AND sentinel.stamped_at IS NOT NULL THEN
    RETURN jsonb_build_object('answer', 'stamped', 'abandoned', false, 'sentinel', to_jsonb(sentinel) - 'lease_token');
  END IF;

  -- Versions of a key are rows of their own: the lock of one does not keep the other away.
  PERFORM pg_advisory_xact_lock(hashtextextended('public.outbox_sentinels ' || key, 0));
  INSERT INTO public.outbox_sentinels AS known (key, version)
  VALUES (key, version)
  ON CONFLICT ON CONSTRAINT outbox_sentinels_pkey DO NOTHING;
  SELECT * INTO STRICT sentinel FROM public.outbox_sentinels AS known
  WHERE known.key = key AND known.version = version
  FOR UPDATE;
  -- Not now(): that was before the wait for the locks.
  moment := clock_timestamp();

  answer := CASE
    WHEN heed_stamp AND sentinel.stamped_at IS NOT NULL THEN 'stamped'
    WHEN sentinel.closed_until > moment THEN 'closed'
    WHEN EXISTS (SELECT FROM public.outbox_sentinels AS known
                 WHERE known.key = key AND known.leased_until > moment) THEN 'running'
    ELSE 'claimed'
  END;
  IF answer = 'claimed' THEN
    abandoned := sentinel.lease_token IS NOT NULL;
    UPDATE public.outbox_sentinels AS known
    SET lease_token  = lease_token,
        leased_until = moment + lease_ms * interval '1 millisecond'
    WHERE known.key = key AND known.version = version;
  END IF;
  RETURN jsonb_build_object('answer', answer, 'abandoned', abandoned, 'sentinel', to_jsonb(sentinel) - 'lease_token');
END
$outbox$;

-- Prolongs a lease. Returns whether it was still held.
CREATE OR REPLACE FUNCTION public.outbox_sentinel_renew(key text, version text, lease_token uuid, lease_ms float8)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $outbox$
#variable_conflict use_variable
BEGIN
  UPDATE public.outbox_sentinels AS known
  SET leased_until = clock_timestamp() + lease_ms * interval '1 millisecond'
  WHERE known.key = key AND known.version = version AND known.lease_token = lease_token;
  RETURN FOUND;
END
$outbox$;

-- Ends a lease: the work is done.
--   stamped  false: without the mark, which is the application's own or is to stay unset
--   returns  whether the lease was still held
CREATE OR REPLACE FUNCTION public.outbox_sentinel_stamp(key text, version text, lease_token uuid, stamped boolean)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $outbox$
#variable_conflict use_variable
BEGIN
  UPDATE public.outbox_sentinels AS known
  SET stamped_at      = CASE WHEN stamped THEN now() END,
      lease_token     = NULL,
      leased_until    = NULL,
      failures        = 0,
      same_failures   = 0,
      last_error      = NULL,
      last_error_kind = NULL,
      failed_at       = NULL,
      closed_at       = NULL,
      closed_until    = NULL,
      closings        = 0
  WHERE known.key = key AND known.version = version AND known.lease_token = lease_token;
  RETURN FOUND;
END
$outbox$;

-- Ends a lease: the work has failed. What is counted and whether the gate closes is the caller's judgement.
--   close_ms  for how long the gate closes; NULL: it stays open
--   returns   the row as it is now; NULL if the lease was no longer held
CREATE OR REPLACE FUNCTION public.outbox_sentinel_fail(
  key text, version text, lease_token uuid, failures integer, same_failures integer, error text, kind text,
  close_ms float8)
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
AS $outbox$
#variable_conflict use_variable
DECLARE
  sentinel public.outbox_sentinels%ROWTYPE;
BEGIN
  UPDATE public.outbox_sentinels AS known
  SET lease_token     = NULL,
      leased_until    = NULL,
      failures        = failures,
      same_failures   = same_failures,
      last_error      = error,
      last_error_kind = kind,
      failed_at       = now(),
      closed_at       = CASE WHEN close_ms IS NOT NULL THEN coalesce(known.closed_at, now()) END,
      closed_until    = now() + close_ms * interval '1 millisecond',
      closings        = known.closings + CASE WHEN close_ms IS NULL THEN 0 ELSE 1 END
  WHERE known.key = key AND known.version = version AND known.lease_token = lease_token
  RETURNING known.* INTO sentinel;
  IF NOT FOUND THEN RETURN NULL; END IF;
  RETURN to_jsonb(sentinel) - 'lease_token';
END
$outbox$;

-- Ends a lease without a result: the process stops. Returns whether it was still held.
CREATE OR REPLACE FUNCTION public.outbox_sentinel_release(key text, version text, lease_token uuid)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $outbox$
#variable_conflict use_variable
BEGIN
  UPDATE public.outbox_sentinels AS known
  SET lease_token  = NULL,
      leased_until = NULL
  WHERE known.key = key AND known.version = version AND known.lease_token = lease_token;
  RETURN FOUND;
END
$outbox$;

-- Opens a closed gate at once and counts its failures from the start.
--   version  NULL: all of them
--   returns  how many rows had failures
CREATE OR REPLACE FUNCTION public.outbox_sentinel_reopen(key text, version text)
RETURNS integer
LANGUAGE sql
SET search_path = ''
AS $outbox$
  WITH reopened AS (
    UPDATE public.outbox_sentinels AS known
    SET failures      = 0,
        same_failures = 0,
        closed_at     = NULL,
        closed_until  = NULL,
        closings      = 0
    WHERE known.key = $1 AND known.version = coalesce($2, known.version) AND known.failures > 0
    RETURNING 1
  )
  SELECT count(*)::integer FROM reopened;
$outbox$;

-- Rows as JSON: those that failed last come first, then those made last.
--   key           NULL: of every key
--   only_failing  only those whose last run has failed
CREATE OR REPLACE FUNCTION public.outbox_sentinel_list(key text, only_failing boolean, batch_size integer)
RETURNS jsonb
LANGUAGE sql
STABLE
SET search_path = ''
AS $outbox$
  SELECT coalesce(jsonb_agg(listed.sentinel ORDER BY listed.place), '[]'::jsonb)
  FROM (
    SELECT to_jsonb(known) - 'lease_token'
             || jsonb_build_object('running', coalesce(known.leased_until > now(), false),
                                   'closed',  coalesce(known.closed_until > now(), false)) AS sentinel,
           row_number() OVER (ORDER BY known.failed_at DESC NULLS LAST, known.created_at DESC, known.key) AS place
    FROM public.outbox_sentinels AS known
    WHERE ($1 IS NULL OR known.key = $1)
      AND (NOT $2 OR known.failures > 0)
    ORDER BY place
    LIMIT $3
  ) AS listed;
$outbox$;

CREATE OR REPLACE FUNCTION public.outbox_sentinel_stats()
RETURNS jsonb
LANGUAGE sql
STABLE
SET search_path = ''
AS $outbox$
  SELECT jsonb_build_object('failing', count(*),
                            'closed',  count(*) FILTER (WHERE known.closed_until > now()))
  FROM public.outbox_sentinels AS known
  WHERE known.failures > 0;
$outbox$;

-- For rpc. The other verbs answer an object, a list, a count, true or false; this one's NULL could not be told from no
-- answer at all, which is what a wrong host or a proxy gives.
CREATE OR REPLACE FUNCTION public.outbox_sentinel_fail_as_json(
  key text, version text, lease_token uuid, failures integer, same_failures integer, error text, kind text,
  close_ms float8)
RETURNS jsonb
LANGUAGE sql
SET search_path = ''
AS $outbox$
  SELECT jsonb_build_object('sentinel', public.outbox_sentinel_fail($1, $2, $3, $4, $5, $6, $7, $8));
$outbox$;

ALTER TABLE public.outbox_sentinels ENABLE ROW LEVEL SECURITY;

-- Closed by default, as the rest of the outbox is.
DO $outbox$
DECLARE
  stranger text;
  verb     regprocedure;
BEGIN
  FOREACH stranger IN ARRAY ARRAY['public', 'anon', 'authenticated'] LOOP
    CONTINUE WHEN stranger <> 'public' AND NOT EXISTS (SELECT FROM pg_roles WHERE rolname = stranger);
    EXECUTE format('REVOKE ALL ON TABLE %s FROM %s', 'public.outbox_sentinels'::regclass, stranger);
  END LOOP;

  FOREACH verb IN ARRAY ARRAY[
    'public.outbox_sentinel_claim(text, text, boolean, uuid, float8)',
    'public.outbox_sentinel_renew(text, text, uuid, float8)',
    'public.outbox_sentinel_stamp(text, text, uuid, boolean)',
    'public.outbox_sentinel_fail(text, text, uuid, integer, integer, text, text, float8)',
    'public.outbox_sentinel_release(text, text, uuid)',
    'public.outbox_sentinel_reopen(text, text)',
    'public.outbox_sentinel_list(text, boolean, integer)',
    'public.outbox_sentinel_stats()',
    'public.outbox_sentinel_fail_as_json(text, text, uuid, integer, integer, text, text, float8)']::regprocedure[]
  LOOP
    FOREACH stranger IN ARRAY ARRAY['public', 'anon', 'authenticated'] LOOP
      CONTINUE WHEN stranger <> 'public' AND NOT EXISTS (SELECT FROM pg_roles WHERE rolname = stranger);
      EXECUTE format('REVOKE ALL ON FUNCTION %s FROM %s', verb, stranger);
    END LOOP;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'service_role') THEN
      EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO service_role', verb);
    END IF;
  END LOOP;

  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'service_role') THEN
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON TABLE %s TO service_role', 'public.outbox_sentinels'::regclass);
  END IF;
END
$outbox$;

INSERT INTO public.outbox_migrations (version, name)
VALUES (6, 'outbox_sentinels')
ON CONFLICT (version) DO NOTHING;

-- Tells the Data API of the new functions, where there is one.
NOTIFY pgrst, 'reload schema';
