-- What relays tell of themselves (alive, who listens to what) and what they did minute by minute, and events as lists.
--
-- Runs as it lies, in one transaction, twice without harm. Needs CREATE on schema public. Takes no lock on any table but
-- its own.
--
-- Counting finished events afterwards would scan the table. So each relay counts what it settles, and reports it every
-- 15 seconds: rows for (minute, event type, relay), which no two processes share. A process that is killed takes the
-- counts of its last 15 seconds along, never an event.
--
-- If the application connects as a role that does not own the tables, give it:
--   GRANT SELECT, INSERT, UPDATE, DELETE ON public.outbox_relays, public.outbox_activity TO app;
--   CREATE POLICY app_uses_relays ON public.outbox_relays TO app USING (true) WITH CHECK (true);
--   CREATE POLICY app_uses_activity ON public.outbox_activity TO app USING (true) WITH CHECK (true);

CREATE TABLE IF NOT EXISTS public.outbox_relays (
  relay_id   uuid        PRIMARY KEY,
  name       text        NOT NULL,
  version    text        NOT NULL,
  listeners  jsonb       NOT NULL DEFAULT '[]',
  reports    bigint      NOT NULL,
  started_at timestamptz NOT NULL DEFAULT now(),
  seen_at    timestamptz NOT NULL DEFAULT now(),
  stopped_at timestamptz
);

COMMENT ON TABLE  public.outbox_relays            IS 'Processes that relay, or did within a day.';
COMMENT ON COLUMN public.outbox_relays.name       IS 'host:pid';
COMMENT ON COLUMN public.outbox_relays.version    IS 'Of the package nestjs-outbox-relay.';
COMMENT ON COLUMN public.outbox_relays.listeners  IS '[{name, event}]: its @OnEvent methods.';
COMMENT ON COLUMN public.outbox_relays.reports    IS 'Number of the last report: one that is sent again counts once.';
COMMENT ON COLUMN public.outbox_relays.seen_at    IS 'When it last reported. It does every 15 seconds.';
COMMENT ON COLUMN public.outbox_relays.stopped_at IS 'When it ended in good order.';

CREATE TABLE IF NOT EXISTS public.outbox_activity (
  minute     timestamptz  NOT NULL,
  event_type varchar(255) NOT NULL,
  relay_id   uuid         NOT NULL,
  delivered  bigint       NOT NULL,
  retried    bigint       NOT NULL,
  failed     bigint       NOT NULL,

  PRIMARY KEY (minute, event_type, relay_id)
);

COMMENT ON TABLE  public.outbox_activity           IS 'What relays settled, minute by minute, for 25 hours.';
COMMENT ON COLUMN public.outbox_activity.delivered IS 'Events completed.';
COMMENT ON COLUMN public.outbox_activity.retried   IS 'Failed attempts with another to come.';
COMMENT ON COLUMN public.outbox_activity.failed    IS 'Events set aside as dead letters.';

-- A relay's report: {relay_id, name, version, listeners, number, stopped, activity: [{event_type, delivered, retried,
-- failed}]}. A report with a number that was seen before changes nothing, so it may be sent again.
--   returns  how many rows of activity were counted
CREATE OR REPLACE FUNCTION public.outbox_report(report jsonb)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $outbox$
DECLARE
  counted integer;
BEGIN
  -- Who stays silent for a day is gone. The rows of a relay are its own; the old ones are anybody's, one at a time.
  DELETE FROM public.outbox_relays AS gone
  WHERE gone.ctid = ANY (ARRAY(
    SELECT silent.ctid
    FROM public.outbox_relays AS silent
    WHERE silent.seen_at < now() - interval '1 day'
    FOR UPDATE SKIP LOCKED));
  DELETE FROM public.outbox_activity AS old
  WHERE old.ctid = ANY (ARRAY(
    SELECT past.ctid
    FROM public.outbox_activity AS past
    WHERE past.minute < now() - interval '25 hours'
    LIMIT 1000
    FOR UPDATE SKIP LOCKED));

  INSERT INTO public.outbox_relays AS relay (relay_id, name, version, listeners, reports, stopped_at)
  VALUES ((report->>'relay_id')::uuid, report->>'name', report->>'version', report->'listeners',
          (report->>'number')::bigint, CASE WHEN (report->>'stopped')::boolean THEN now() END)
  ON CONFLICT (relay_id) DO UPDATE
  SET name       = excluded.name,
      version    = excluded.version,
      listeners  = excluded.listeners,
      reports    = excluded.reports,
      seen_at    = now(),
      stopped_at = excluded.stopped_at
  WHERE relay.reports < excluded.reports;
  IF NOT FOUND THEN
    RETURN 0;
  END IF;

  INSERT INTO public.outbox_activity AS known (minute, event_type, relay_id, delivered, retried, failed)
  SELECT date_trunc('minute', now()), told.event_type, (report->>'relay_id')::uuid,
         told.delivered, told.retried, told.failed
  FROM jsonb_to_recordset(report->'activity')
         AS told (event_type varchar(255), delivered bigint, retried bigint, failed bigint)
  ON CONFLICT (minute, event_type, relay_id) DO UPDATE
  SET delivered = known.delivered + excluded.delivered,
      retried   = known.retried   + excluded.retried,
      failed    = known.failed    + excluded.failed;
  GET DIAGNOSTICS counted = ROW_COUNT;
  RETURN counted;
END
$outbox$;

-- The relays that reported within a day, those heard last first.
CREATE OR REPLACE FUNCTION public.outbox_relay_list()
RETURNS jsonb
LANGUAGE sql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $outbox$
  SELECT coalesce(jsonb_agg(
           to_jsonb(relay) || jsonb_build_object(
             'silent_ms', extract(epoch FROM now() - relay.seen_at)::float8 * 1000)
           ORDER BY relay.seen_at DESC, relay.relay_id), '[]')
  FROM public.outbox_relays AS relay;
$outbox$;

-- What was settled in the last `since_ms`, by event type, in steps of `step_ms` (whole minutes), oldest first. Steps in
-- which nothing happened are left out.
CREATE OR REPLACE FUNCTION public.outbox_activity_list(since_ms float8, step_ms float8, of_type text)
RETURNS jsonb
LANGUAGE sql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $outbox$
  SELECT coalesce(jsonb_agg(to_jsonb(step) ORDER BY step.at, step.event_type), '[]')
  FROM (
    SELECT to_timestamp(floor(extract(epoch FROM counted.minute)::float8 * 1000 / step_ms) * step_ms / 1000) AS at,
           counted.event_type,
           sum(counted.delivered) AS delivered,
           sum(counted.retried)   AS retried,
           sum(counted.failed)    AS failed
    FROM public.outbox_activity AS counted
    WHERE counted.minute > now() - since_ms * interval '1 millisecond'
      AND (of_type IS NULL OR counted.event_type = of_type)
    GROUP BY 1, 2
  ) AS step;
$outbox$;

-- Events that are not finished, oldest first, without their payloads. (after_time, after_id) is the last row of the page
-- before.
--   of_state  'due', 'scheduled' or 'processing'
CREATE OR REPLACE FUNCTION public.outbox_list(
  of_state text, of_type text, after_time timestamptz, after_id uuid, page_size integer)
RETURNS jsonb
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $outbox$
BEGIN
  RETURN (
    -- Two halves, each with its state as a constant: the partial indexes are used for nothing less.
    WITH listed AS MATERIALIZED (
      (SELECT event.ctid AS place
       FROM public.outbox_events AS event
       WHERE of_state <> 'processing'
         AND event.status = 'PENDING'
         AND (of_state <> 'due' OR event.scheduled_at <= now())
         AND (of_state <> 'scheduled' OR event.scheduled_at > now())
         AND (of_type IS NULL OR event.event_type = of_type)
         AND (after_time IS NULL OR (event.scheduled_at, event.id) > (after_time, after_id))
       ORDER BY event.scheduled_at, event.id
       LIMIT page_size)
      UNION ALL
      (SELECT event.ctid
       FROM public.outbox_events AS event
       WHERE of_state = 'processing'
         AND event.status = 'PROCESSING'
         AND (of_type IS NULL OR event.event_type = of_type)
         AND (after_time IS NULL OR (event.scheduled_at, event.id) > (after_time, after_id))
       ORDER BY event.scheduled_at, event.id
       LIMIT page_size)
    )
    SELECT jsonb_build_object('events', coalesce(jsonb_agg(jsonb_build_object(
             'id',              event.id,
             'event_type',      event.event_type,
             'status',          event.status,
             'retry_count',     event.retry_count,
             'last_error',      event.last_error,
             'acknowledged_by', event.acknowledged_by,
             'scheduled_at',    event.scheduled_at,
             'created_at',      event.created_at,
             'unheard_since',   event.unheard_since,
             'leased_until',    event.leased_until)
             ORDER BY event.scheduled_at, event.id), '[]'))
    FROM public.outbox_events AS event
    WHERE event.ctid = ANY (ARRAY(SELECT listed.place FROM listed)));
END
$outbox$;

ALTER TABLE public.outbox_relays   ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.outbox_activity ENABLE ROW LEVEL SECURITY;

-- Closed by default, as the rest of the outbox is.
DO $outbox$
DECLARE
  stranger text;
  verb     regprocedure;
BEGIN
  FOREACH stranger IN ARRAY ARRAY['public', 'anon', 'authenticated'] LOOP
    CONTINUE WHEN stranger <> 'public' AND NOT EXISTS (SELECT FROM pg_roles WHERE rolname = stranger);
    EXECUTE format('REVOKE ALL ON TABLE %s, %s FROM %s',
                   'public.outbox_relays'::regclass, 'public.outbox_activity'::regclass, stranger);
  END LOOP;

  FOREACH verb IN ARRAY ARRAY[
    'public.outbox_report(jsonb)',
    'public.outbox_relay_list()',
    'public.outbox_activity_list(float8, float8, text)',
    'public.outbox_list(text, text, timestamptz, uuid, integer)']::regprocedure[]
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
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON TABLE %s, %s TO service_role',
                   'public.outbox_relays'::regclass, 'public.outbox_activity'::regclass);
  END IF;
END
$outbox$;

INSERT INTO public.outbox_migrations (version, name)
VALUES (7, 'outbox_activity')
ON CONFLICT (version) DO NOTHING;

-- Tells the Data API of the new functions, where there is one.
NOTIFY pgrst, 'reload schema';
