-- Closed by default: nothing for PUBLIC, nor for Supabase's anon and authenticated; what it needs for service_role.
--
-- If the application connects as a role that does not own the table, give it:
--   GRANT SELECT, INSERT, UPDATE, DELETE ON public.outbox_events TO app;
--   GRANT SELECT ON public.outbox_migrations TO app;
--   GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO app;   -- or the outbox_* functions one by one
--   CREATE POLICY app_uses_outbox ON public.outbox_events TO app USING (true) WITH CHECK (true);
--   CREATE POLICY app_reads_version ON public.outbox_migrations FOR SELECT TO app USING (true);
-- Runs as it lies, in one transaction, twice without harm.

ALTER TABLE public.outbox_events     ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.outbox_migrations ENABLE ROW LEVEL SECURITY;

DO $outbox$
DECLARE
  stranger text;
  verb     regprocedure;
  home     regnamespace;
BEGIN
  -- Revoking from PUBLIC alone is not enough where default privileges have named the roles (older Supabase projects).
  FOREACH stranger IN ARRAY ARRAY['public', 'anon', 'authenticated'] LOOP
    CONTINUE WHEN stranger <> 'public' AND NOT EXISTS (SELECT FROM pg_roles WHERE rolname = stranger);
    EXECUTE format('REVOKE ALL ON TABLE %s, %s FROM %s',
                   'public.outbox_events'::regclass, 'public.outbox_migrations'::regclass, stranger);
  END LOOP;

  FOREACH verb IN ARRAY ARRAY[
    'public.outbox_enqueue(jsonb)',
    'public.outbox_enqueue_one(uuid, text, jsonb, jsonb, timestamptz, float8)',
    'public.outbox_claim(integer, float8, uuid, timestamptz)',
    'public.outbox_claim_others(text[], integer, float8, uuid)',
    'public.outbox_reap(integer, float8, uuid)',
    'public.outbox_settle(jsonb)',
    'public.outbox_settle_and_claim(uuid[], uuid[], jsonb, integer, float8, uuid, timestamptz)',
    'public.outbox_renew(jsonb, float8)',
    'public.outbox_redrive(uuid[], text, text, timestamptz, timestamptz, integer, float8, float8)',
    'public.outbox_discard(uuid[], text, text, timestamptz, timestamptz, integer)',
    'public.outbox_prune(text, float8, integer)',
    'public.outbox_dead_letters(uuid[], text, text, timestamptz, timestamptz, timestamptz, uuid, integer)',
    'public.outbox_stats()']::regprocedure[]
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
    SELECT relnamespace::regnamespace INTO STRICT home FROM pg_class WHERE oid = 'public.outbox_events'::regclass;
    IF NOT has_schema_privilege('service_role', home::oid, 'USAGE') THEN
      EXECUTE format('GRANT USAGE ON SCHEMA %s TO service_role', home);
    END IF;
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON TABLE %s TO service_role', 'public.outbox_events'::regclass);
    EXECUTE format('GRANT SELECT ON TABLE %s TO service_role', 'public.outbox_migrations'::regclass);
  END IF;
END
$outbox$;

INSERT INTO public.outbox_migrations (version, name)
VALUES (3, 'outbox_access')
ON CONFLICT (version) DO NOTHING;
