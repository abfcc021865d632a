-- Supabase: the verbs for its Data API (rpc), and what SQL of your own calls to enqueue in its own transaction.
-- Of use on any PostgreSQL: outbox_enqueue(type, payload, …) in functions, outbox_enqueue_row() in triggers.
--
-- If a role that does not own the outbox is to attach outbox_enqueue_row() to its tables, give it:
--   GRANT EXECUTE ON FUNCTION public.outbox_enqueue_row() TO app;
-- Runs as it lies, in one transaction, twice without harm.

-- Enqueues one event, as part of the transaction it is called in. Arguments are held to the rules of TypeScript's
-- enqueue, except for the size. With the rights of the caller: whoever is not to enqueue at will (Supabase's anon and
-- authenticated) gets a SECURITY DEFINER function of yours that enqueues what it decides.
--   id: makes the call repeatable: one that is there already is left as it is
--   returns the id of the event
CREATE OR REPLACE FUNCTION public.outbox_enqueue(
  event_type text, payload jsonb, metadata jsonb DEFAULT '{}', scheduled_at timestamptz DEFAULT NULL,
  id uuid DEFAULT NULL)
RETURNS uuid
LANGUAGE plpgsql
SET search_path = ''
AS $outbox$
DECLARE
  event_id uuid := coalesce(id, gen_random_uuid());
  problem  text;
  fix      text;
BEGIN
  IF event_type IS NULL OR btrim(event_type, E' \t\r\n') = '' THEN
    problem := format('event_type must not be empty, got %L', event_type);
    fix := 'Name what has happened, e.g. ''quote_request.created''.';
  ELSIF char_length(event_type) > 255 THEN
    problem := format('event_type must be at most 255 characters, got %s', char_length(event_type));
    fix := 'Choose a shorter name.';
  ELSIF event_type IN ('error', 'newListener', 'removeListener', 'outbox.dead_letter') THEN
    problem := format('event_type %L has a meaning of its own to the emitter', event_type);
    fix := 'Choose another name.';
  ELSIF string_to_array(event_type, '.') && ARRAY[
          '__defineGetter__', '__defineSetter__', '__lookupGetter__', '__lookupSetter__', '__proto__', 'constructor',
          'hasOwnProperty', 'isPrototypeOf', 'propertyIsEnumerable', 'toLocaleString', 'toString', 'valueOf'] THEN
    problem := format('event_type %L contains a name that every JavaScript object has', event_type);
    fix := 'Choose another name.';
  ELSIF payload IS NULL OR jsonb_typeof(payload) <> 'object' THEN
    problem := format('payload must be a JSON object, got %s', coalesce(jsonb_typeof(payload), 'NULL'));
    fix := 'Wrap it, e.g. jsonb_build_object(''items'', …).';
  ELSIF payload ?| ARRAY['_outbox', '_outboxFailed'] THEN
    problem := 'payload must not have the keys _outbox and _outboxFailed, which the outbox sets itself';
    fix := 'Rename your key.';
  ELSIF metadata IS NOT NULL AND jsonb_typeof(metadata) <> 'object' THEN
    problem := format('metadata must be a JSON object, got %s', jsonb_typeof(metadata));
    fix := 'Wrap it, e.g. jsonb_build_object(''traceId'', …), or leave it out.';
  ELSIF scheduled_at < '0001-01-01 00:00:00+00' OR scheduled_at >= '10000-01-01 00:00:00+00' THEN
    problem := format('scheduled_at must lie in the years 1 to 9999, got %s', scheduled_at);
    fix := 'Leave it out for an event that is due at once.';
  END IF;
  IF problem IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = problem, HINT = fix;
  END IF;

  PERFORM public.outbox_enqueue(jsonb_build_array(jsonb_build_object(
    'id', event_id, 'event_type', event_type, 'payload', payload, 'metadata', metadata,
    'scheduled_at', scheduled_at)));
  RETURN event_id;
END
$outbox$;

-- A trigger function: enqueues an event for each row that a table of yours gets, changes or loses.
--   CREATE TRIGGER tell_of_new_quote_requests AFTER INSERT ON quote_requests
--   FOR EACH ROW EXECUTE FUNCTION outbox_enqueue_row('quote_request.created', 'quoteRequestId:id', 'supplier_id');
-- The first argument is the event type, the others the columns that make the payload, each under its own name or, with
-- 'key:column', another one. Of a deleted row the old values, else the new ones. The metadata tell table and operation.
--
-- With the rights of its owner, so that whoever may write to your table (authenticated, say) need no right to the
-- outbox. It cannot be called but by a trigger, and it takes EXECUTE to attach it, which nobody has been given.
CREATE OR REPLACE FUNCTION public.outbox_enqueue_row()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $outbox$
DECLARE
  changed jsonb := to_jsonb(CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END);
  payload jsonb := '{}';
  place   text;
  entry   text;
  key     text;
  field   text;
BEGIN
  place := format('trigger %I on %I.%I', TG_NAME, TG_TABLE_SCHEMA, TG_TABLE_NAME);
  IF TG_LEVEL <> 'ROW' OR TG_WHEN <> 'AFTER' THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('%s must be AFTER … FOR EACH ROW, it is %s %s', place, TG_WHEN, TG_LEVEL),
      HINT = 'Before a row is written, it may still change or not come to be.';
  ELSIF TG_NARGS < 2 THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('%s must name the event type and at least one column', place),
      HINT = 'E.g. (''quote_request.created'', ''id'', ''supplier_id'').';
  END IF;

  FOREACH entry IN ARRAY TG_ARGV[1:] LOOP
    key := split_part(entry, ':', 1);
    field := split_part(entry, ':', -1);
    IF key = '' OR field = '' OR entry LIKE '%:%:%' OR payload ? key THEN
      RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
        MESSAGE = format('%s has the argument %L, which is no column or gives a key twice', place, entry),
        HINT = 'Each argument after the event type is ''column'' or ''key:column'', with a key of its own.';
    ELSIF NOT changed ? field THEN
      RAISE EXCEPTION USING ERRCODE = 'undefined_column',
        MESSAGE = format('%s names the column %I, which the table does not have', place, field),
        HINT = 'Each argument after the event type is ''column'' or ''key:column''.';
    END IF;
    payload := payload || jsonb_build_object(key, changed -> field);
  END LOOP;

  PERFORM public.outbox_enqueue(TG_ARGV[0], payload, jsonb_build_object(
    'operation', TG_OP, 'table', format('%I.%I', TG_TABLE_SCHEMA, TG_TABLE_NAME)));
  RETURN NULL;
END
$outbox$;

-- For rpc: verbs that answer rows, as one JSON value. The Data API cuts rows above its max-rows without a word, when
-- all of them have been claimed already; one value it does not cut. Always an object with the name of what it holds,
-- so that an answer from anything else than this function is not taken for one. Times are ISO 8601 in UTC with
-- microseconds.

CREATE OR REPLACE FUNCTION public.outbox_claim_as_json(
  batch_size integer, lease_ms float8, new_lease_token uuid, not_before timestamptz)
RETURNS jsonb
LANGUAGE sql
SET search_path = ''
SET timezone = 'UTC'
AS $outbox$
  SELECT jsonb_build_object('claimed', coalesce(jsonb_agg(to_jsonb(event) ORDER BY event.scheduled_at), '[]'))
  FROM public.outbox_claim(batch_size, lease_ms, new_lease_token, not_before) AS event;
$outbox$;

CREATE OR REPLACE FUNCTION public.outbox_claim_others_as_json(
  other_than text[], batch_size integer, lease_ms float8, new_lease_token uuid)
RETURNS jsonb
LANGUAGE sql
SET search_path = ''
SET timezone = 'UTC'
AS $outbox$
  SELECT jsonb_build_object('claimed', coalesce(jsonb_agg(to_jsonb(event) ORDER BY event.scheduled_at), '[]'))
  FROM public.outbox_claim_others(other_than, batch_size, lease_ms, new_lease_token) AS event;
$outbox$;

CREATE OR REPLACE FUNCTION public.outbox_reap_as_json(batch_size integer, lease_ms float8, new_lease_token uuid)
RETURNS jsonb
LANGUAGE sql
SET search_path = ''
SET timezone = 'UTC'
AS $outbox$
  SELECT jsonb_build_object('claimed', coalesce(jsonb_agg(to_jsonb(event) ORDER BY event.scheduled_at), '[]'))
  FROM public.outbox_reap(batch_size, lease_ms, new_lease_token) AS event;
$outbox$;

CREATE OR REPLACE FUNCTION public.outbox_settle_and_claim_as_json(
  completed uuid[], tokens uuid[], settlements jsonb, batch_size integer, lease_ms float8, new_lease_token uuid,
  not_before timestamptz)
RETURNS jsonb
LANGUAGE sql
SET search_path = ''
SET timezone = 'UTC'
AS $outbox$
  SELECT jsonb_build_object(
    'claimed', coalesce(jsonb_agg(to_jsonb(event) ORDER BY event.scheduled_at) FILTER (WHERE NOT event.lost), '[]'),
    'lost', coalesce(jsonb_agg(event.id) FILTER (WHERE event.lost), '[]'))
  FROM public.outbox_settle_and_claim(
         completed, tokens, settlements, batch_size, lease_ms, new_lease_token, not_before) AS event;
$outbox$;

CREATE OR REPLACE FUNCTION public.outbox_dead_letters_as_json(
  ids uuid[], of_type text, matching text, failed_after timestamptz, failed_before timestamptz,
  before_time timestamptz, before_id uuid, page_size integer)
RETURNS jsonb
LANGUAGE sql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $outbox$
  SELECT jsonb_build_object(
    'events', coalesce(jsonb_agg(to_jsonb(event) ORDER BY event.processed_at DESC, event.id DESC), '[]'))
  FROM public.outbox_dead_letters(
         ids, of_type, matching, failed_after, failed_before, before_time, before_id, page_size) AS event;
$outbox$;

CREATE OR REPLACE FUNCTION public.outbox_count_dead_letters_as_json(
  ids uuid[], of_type text, matching text, failed_after timestamptz, failed_before timestamptz)
RETURNS jsonb
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $outbox$
BEGIN
  RETURN (
    SELECT jsonb_build_object('total', count(*))
    FROM public.outbox_events AS event
    WHERE event.status = 'FAILED'
      AND (ids IS NULL OR event.id = ANY (ids))
      AND (of_type IS NULL OR event.event_type = of_type)
      AND (matching IS NULL OR strpos(lower(event.event_type), lower(matching)) > 0
                            OR strpos(lower(event.last_error), lower(matching)) > 0)
      AND (failed_after IS NULL OR event.processed_at >= failed_after)
      AND (failed_before IS NULL OR event.processed_at < failed_before));
END
$outbox$;

CREATE OR REPLACE FUNCTION public.outbox_find_as_json(event_id uuid)
RETURNS jsonb
LANGUAGE sql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $outbox$
  SELECT jsonb_build_object('events', coalesce(jsonb_agg(to_jsonb(event)), '[]'))
  FROM public.outbox_events AS event
  WHERE event.id = event_id;
$outbox$;

CREATE OR REPLACE FUNCTION public.outbox_version_as_json()
RETURNS jsonb
LANGUAGE sql
STABLE
SET search_path = ''
AS $outbox$
  SELECT jsonb_build_object('version', coalesce(max(migration.version), 0),
                            'breaks_before', coalesce(max(migration.breaks_before), 0))
  FROM public.outbox_migrations AS migration;
$outbox$;

-- Wakes relays that listen on PostgreSQL, for a process that has no connection to it. Called after the event is stored.
CREATE OR REPLACE FUNCTION public.outbox_announce_as_json(channel text)
RETURNS jsonb
LANGUAGE sql
SET search_path = ''
AS $outbox$
  SELECT jsonb_build_object('announced', pg_notify(channel, '') IS NOT NULL);
$outbox$;

-- Closed by default, as the rest of the outbox is.
DO $outbox$
DECLARE
  stranger text;
  verb     regprocedure;
BEGIN
  FOREACH verb IN ARRAY ARRAY[
    'public.outbox_enqueue(text, jsonb, jsonb, timestamptz, uuid)',
    'public.outbox_enqueue_row()',
    'public.outbox_claim_as_json(integer, float8, uuid, timestamptz)',
    'public.outbox_claim_others_as_json(text[], integer, float8, uuid)',
    'public.outbox_reap_as_json(integer, float8, uuid)',
    'public.outbox_settle_and_claim_as_json(uuid[], uuid[], jsonb, integer, float8, uuid, timestamptz)',
    'public.outbox_dead_letters_as_json(uuid[], text, text, timestamptz, timestamptz, timestamptz, uuid, integer)',
    'public.outbox_count_dead_letters_as_json(uuid[], text, text, timestamptz, timestamptz)',
    'public.outbox_find_as_json(uuid)',
    'public.outbox_version_as_json()',
    'public.outbox_announce_as_json(text)']::regprocedure[]
  LOOP
    FOREACH stranger IN ARRAY ARRAY['public', 'anon', 'authenticated'] LOOP
      CONTINUE WHEN stranger <> 'public' AND NOT EXISTS (SELECT FROM pg_roles WHERE rolname = stranger);
      EXECUTE format('REVOKE ALL ON FUNCTION %s FROM %s', verb, stranger);
    END LOOP;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'service_role') AND verb <> 'public.outbox_enqueue_row()'::regprocedure THEN
      EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO service_role', verb);
    END IF;
  END LOOP;
END
$outbox$;

INSERT INTO public.outbox_migrations (version, name)
VALUES (5, 'outbox_supabase')
ON CONFLICT (version) DO NOTHING;

-- Tells the Data API of the new functions, where there is one.
NOTIFY pgrst, 'reload schema';
