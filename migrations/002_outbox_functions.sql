-- The verbs: everything the library does to the table, as functions that a pool and Supabase's rpc call alike.
--
-- Policy (how often to retry, how long to wait) is the library's and arrives as arguments; here is only what must
-- be true of the rows. Every function runs with the rights of its caller and a fixed search_path. In plpgsql, so that
-- plans are kept, and a filter that is null costs nothing: it is folded away when the plan is made.
-- Runs as it lies, in one transaction, twice without harm.

-- Writes events. An id that is there already is left as it is: an error would poison the caller's transaction.
--   events: [{ "id", "event_type", "payload", "metadata"?, "scheduled_at"? | "delay_ms"? }, …]
--   returns the ids that were written
CREATE OR REPLACE FUNCTION public.outbox_enqueue(events jsonb)
RETURNS uuid[]
LANGUAGE plpgsql
SET search_path = ''
AS $outbox$
DECLARE
  written uuid[];
BEGIN
  WITH stored AS (
    INSERT INTO public.outbox_events AS stored_event (id, event_type, payload, metadata, scheduled_at)
    SELECT coalesce(event.id, gen_random_uuid()),
           event.event_type,
           event.payload,
           coalesce(event.metadata, '{}'),
           coalesce(event.scheduled_at, now() + coalesce(event.delay_ms, 0) * interval '1 millisecond')
    FROM jsonb_to_recordset(events) AS event (
           id uuid, event_type text, payload jsonb, metadata jsonb, scheduled_at timestamptz, delay_ms float8)
    ON CONFLICT (id) DO NOTHING
    RETURNING stored_event.id
  )
  SELECT coalesce(array_agg(stored.id), '{}') INTO written FROM stored;
  RETURN written;
END
$outbox$;

-- The same for one event, which is what most transactions write: taking a list apart is a tenth of the time.
--   due_at, delay_ms  at most one of them; neither: due at once
--   returns  whether it was written
CREATE OR REPLACE FUNCTION public.outbox_enqueue_one(
  event_id uuid, of_type text, content jsonb, about jsonb, due_at timestamptz, delay_ms float8)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $outbox$
BEGIN
  INSERT INTO public.outbox_events (id, event_type, payload, metadata, scheduled_at)
  VALUES (event_id, of_type, content, coalesce(about, '{}'),
          coalesce(due_at, now() + coalesce(delay_ms, 0) * interval '1 millisecond'))
  ON CONFLICT (id) DO NOTHING;
  RETURN FOUND;
END
$outbox$;

-- Takes due events under a lease, oldest due first, past rows that another relay is taking.
-- By ctid: with `id IN (SELECT …)` the planner turns a large batch into a scan of the whole table.
--   not_before: a shortcut past index entries of events that were claimed before and cannot be vacuumed while some
--   session holds an old snapshot. Rows due before it (committed late, released) are found by a claim without: null.
CREATE OR REPLACE FUNCTION public.outbox_claim(
  batch_size integer, lease_ms float8, new_lease_token uuid, not_before timestamptz)
RETURNS TABLE (
  id uuid, event_type text, payload jsonb, metadata jsonb, retry_count integer, acknowledged_by text[],
  scheduled_at timestamptz, created_at timestamptz, unheard_since timestamptz, claimed_at timestamptz)
LANGUAGE plpgsql
SET search_path = ''
AS $outbox$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  UPDATE public.outbox_events AS event
  SET status = 'PROCESSING',
      lease_token = new_lease_token,
      leased_until = now() + lease_ms * interval '1 millisecond'
  WHERE event.ctid = ANY (ARRAY(
          SELECT due.ctid
          FROM public.outbox_events AS due
          WHERE due.status = 'PENDING' AND due.scheduled_at <= now()
            AND due.scheduled_at >= coalesce(not_before, '-infinity')
          ORDER BY due.scheduled_at
          LIMIT batch_size
          FOR UPDATE SKIP LOCKED))
  RETURNING event.id, event.event_type::text, event.payload, event.metadata, event.retry_count, event.acknowledged_by,
            event.scheduled_at, event.created_at, event.unheard_since, now();
END
$outbox$;

-- Takes due events of every type but those named, an equal share of `batch_size` for each: so that a flood of one type
-- does not make the others wait for its end. Steps from type to type along the index.
CREATE OR REPLACE FUNCTION public.outbox_claim_others(
  other_than text[], batch_size integer, lease_ms float8, new_lease_token uuid)
RETURNS TABLE (
  id uuid, event_type text, payload jsonb, metadata jsonb, retry_count integer, acknowledged_by text[],
  scheduled_at timestamptz, created_at timestamptz, unheard_since timestamptz, claimed_at timestamptz)
LANGUAGE plpgsql
SET search_path = ''
AS $outbox$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  WITH RECURSIVE waiting (type) AS (
    SELECT min(event.event_type::text) FROM public.outbox_events AS event WHERE event.status = 'PENDING'
    UNION ALL
    SELECT (SELECT min(event.event_type::text)
            FROM public.outbox_events AS event
            WHERE event.status = 'PENDING' AND event.event_type > waiting.type)
    FROM waiting
    WHERE waiting.type IS NOT NULL
  ), chosen AS MATERIALIZED (
    SELECT waiting.type, greatest(1, batch_size / count(*) OVER ()) AS share
    FROM waiting
    WHERE waiting.type IS NOT NULL
      AND waiting.type <> ALL (other_than)
      AND EXISTS (SELECT FROM public.outbox_events AS event
                  WHERE event.status = 'PENDING' AND event.event_type = waiting.type AND event.scheduled_at <= now())
    ORDER BY random()
    LIMIT batch_size
  )
  UPDATE public.outbox_events AS event
  SET status = 'PROCESSING',
      lease_token = new_lease_token,
      leased_until = now() + lease_ms * interval '1 millisecond'
  WHERE event.ctid = ANY (ARRAY(
          SELECT due.place
          FROM chosen
          CROSS JOIN LATERAL (
            SELECT candidate.ctid AS place
            FROM public.outbox_events AS candidate
            WHERE candidate.status = 'PENDING'
              AND candidate.event_type = chosen.type
              AND candidate.scheduled_at <= now()
            ORDER BY candidate.scheduled_at
            LIMIT chosen.share
            FOR UPDATE SKIP LOCKED
          ) AS due))
  RETURNING event.id, event.event_type::text, event.payload, event.metadata, event.retry_count, event.acknowledged_by,
            event.scheduled_at, event.created_at, event.unheard_since, now();
END
$outbox$;

-- Takes over events whose lease has run out. The caller judges them (a crash is a failed attempt) and settles.
CREATE OR REPLACE FUNCTION public.outbox_reap(batch_size integer, lease_ms float8, new_lease_token uuid)
RETURNS TABLE (
  id uuid, event_type text, payload jsonb, metadata jsonb, retry_count integer, acknowledged_by text[],
  scheduled_at timestamptz, created_at timestamptz, unheard_since timestamptz, claimed_at timestamptz)
LANGUAGE sql
SET search_path = ''
AS $outbox$
  UPDATE public.outbox_events AS event
  SET lease_token = new_lease_token,
      leased_until = now() + lease_ms * interval '1 millisecond'
  WHERE event.ctid = ANY (ARRAY(
          SELECT expired.ctid
          FROM public.outbox_events AS expired
          WHERE expired.status = 'PROCESSING' AND expired.leased_until <= now()
          ORDER BY expired.leased_until
          LIMIT batch_size
          FOR UPDATE SKIP LOCKED))
  RETURNING event.id, event.event_type, event.payload, event.metadata, event.retry_count, event.acknowledged_by,
            event.scheduled_at, event.created_at, event.unheard_since, now();
$outbox$;

-- Ends leases. Only rows that the token still names are changed; a field left out leaves the column as it is.
--   settlements: [{ "id", "lease_token", "status", "retry_count"?, "last_error"?, "acknowledged_by"?,
--                   "delay_ms"? (due again after), "unheard"? (true: nobody listened, false: somebody did) }, …]
--   returns the ids that were still held
CREATE OR REPLACE FUNCTION public.outbox_settle(settlements jsonb)
RETURNS uuid[]
LANGUAGE plpgsql
SET search_path = ''
AS $outbox$
DECLARE
  held uuid[];
BEGIN
  WITH settled AS (
    UPDATE public.outbox_events AS event
    SET status = settlement.status,
        retry_count = coalesce(settlement.retry_count, event.retry_count),
        last_error = coalesce(settlement.last_error, event.last_error),
        acknowledged_by = coalesce(settlement.acknowledged_by, event.acknowledged_by),
        scheduled_at = coalesce(now() + settlement.delay_ms * interval '1 millisecond', event.scheduled_at),
        processed_at = CASE WHEN settlement.status IN ('COMPLETED', 'FAILED') THEN now() END,
        unheard_since = CASE settlement.unheard
                          WHEN true THEN coalesce(event.unheard_since, now())
                          WHEN false THEN NULL
                          ELSE event.unheard_since
                        END,
        lease_token = NULL,
        leased_until = NULL
    FROM jsonb_to_recordset(settlements) AS settlement (
           id uuid, lease_token uuid, status text, retry_count integer, last_error text, acknowledged_by text[],
           delay_ms float8, unheard boolean)
    WHERE event.id = settlement.id AND event.lease_token = settlement.lease_token
    RETURNING event.id
  )
  SELECT coalesce(array_agg(settled.id), '{}') INTO held FROM settled;
  RETURN held;
END
$outbox$;

-- Settles what is finished and claims what is due, in one statement: what a relay under load does all the time.
-- Completed events come as two arrays, for most of what is settled is completed.
--   completed, tokens: ids and lease tokens, side by side; settlements: the others, as for outbox_settle
--   batch_size: 0 claims nothing
--   returns the claimed events, and for each event that was not held any more a row with `lost`
CREATE OR REPLACE FUNCTION public.outbox_settle_and_claim(
  completed uuid[], tokens uuid[], settlements jsonb, batch_size integer, lease_ms float8, new_lease_token uuid,
  not_before timestamptz)
RETURNS TABLE (
  id uuid, event_type text, payload jsonb, metadata jsonb, retry_count integer, acknowledged_by text[],
  scheduled_at timestamptz, created_at timestamptz, unheard_since timestamptz, claimed_at timestamptz, lost boolean)
LANGUAGE plpgsql
SET search_path = ''
AS $outbox$
#variable_conflict use_column
DECLARE
  held uuid[] := '{}';
BEGIN
  IF cardinality(completed) > 0 THEN
    WITH settled AS (
      UPDATE public.outbox_events AS event
      SET status = 'COMPLETED', processed_at = now(), unheard_since = NULL, lease_token = NULL, leased_until = NULL
      FROM unnest(completed, tokens) AS lease (id, token)
      WHERE event.id = lease.id AND event.lease_token = lease.token
      RETURNING event.id
    )
    SELECT coalesce(array_agg(settled.id), '{}') INTO held FROM settled;
  END IF;

  IF jsonb_array_length(settlements) > 0 THEN
    held := held || public.outbox_settle(settlements);
  END IF;

  -- Compared only if there is something to find: as a rule, everything is still held.
  IF cardinality(held) < cardinality(completed) + jsonb_array_length(settlements) THEN
    RETURN QUERY
      SELECT given.id, NULL::text, NULL::jsonb, NULL::jsonb, NULL::integer, NULL::text[], NULL::timestamptz,
             NULL::timestamptz, NULL::timestamptz, NULL::timestamptz, true
      FROM (SELECT unnest(completed) AS id
            UNION ALL
            SELECT settlement.id FROM jsonb_to_recordset(settlements) AS settlement (id uuid)) AS given
      WHERE given.id <> ALL (held);
  END IF;

  IF batch_size > 0 THEN
    RETURN QUERY
      SELECT event.*, false
      FROM public.outbox_claim(batch_size, lease_ms, new_lease_token, not_before) AS event;
  END IF;
END
$outbox$;

-- Prolongs leases from now.
--   leases: [{ "id", "lease_token" }, …]
--   returns the ids that are still held
CREATE OR REPLACE FUNCTION public.outbox_renew(leases jsonb, lease_ms float8)
RETURNS uuid[]
LANGUAGE sql
SET search_path = ''
AS $outbox$
  WITH renewed AS (
    UPDATE public.outbox_events AS event
    SET leased_until = now() + lease_ms * interval '1 millisecond'
    FROM jsonb_to_recordset(leases) AS lease (id uuid, lease_token uuid)
    WHERE event.id = lease.id AND event.lease_token = lease.lease_token
    RETURNING event.id
  )
  SELECT coalesce(array_agg(id), '{}') FROM renewed;
$outbox$;

-- Gives dead letters a second life, the longest dead first, `spacing_ms` apart so that a large redrive is no flood.
-- A null argument does not filter; `matching` is text within the event type or the last error, in upper or lower case.
-- What the first life came to is kept in previous_lives (the last 20).
CREATE OR REPLACE FUNCTION public.outbox_redrive(
  ids uuid[], of_type text, matching text, failed_after timestamptz, failed_before timestamptz,
  batch_size integer, first_delay_ms float8, spacing_ms float8)
RETURNS uuid[]
LANGUAGE plpgsql
SET search_path = ''
AS $outbox$
DECLARE
  changed uuid[];
BEGIN
  WITH chosen AS MATERIALIZED (
    SELECT dead.ctid AS place, row_number() OVER (ORDER BY dead.processed_at, dead.id) - 1 AS position
    FROM (
      SELECT event.ctid, event.processed_at, event.id
      FROM public.outbox_events AS event
      WHERE event.status = 'FAILED'
        AND (ids IS NULL OR event.id = ANY (ids))
        AND (of_type IS NULL OR event.event_type = of_type)
        AND (matching IS NULL OR strpos(lower(event.event_type), lower(matching)) > 0
                              OR strpos(lower(event.last_error), lower(matching)) > 0)
        AND (failed_after IS NULL OR event.processed_at >= failed_after)
        AND (failed_before IS NULL OR event.processed_at < failed_before)
      ORDER BY event.processed_at
      LIMIT batch_size
      FOR UPDATE SKIP LOCKED
    ) AS dead
  ), redriven AS (
    UPDATE public.outbox_events AS event
    SET status = 'PENDING',
        retry_count = 0,
        scheduled_at = now() + (first_delay_ms + chosen.position * spacing_ms) * interval '1 millisecond',
        processed_at = NULL,
        unheard_since = NULL,
        previous_lives = CASE WHEN jsonb_array_length(event.previous_lives) >= 20
                              THEN event.previous_lives - 0
                              ELSE event.previous_lives
                         END || jsonb_build_object(
                           'retryCount', event.retry_count,
                           'lastError', event.last_error,
                           'failedAt', event.processed_at,
                           'redrivenAt', now())
    FROM chosen
    WHERE event.ctid = chosen.place
    RETURNING event.id
  )
  SELECT coalesce(array_agg(redriven.id), '{}') INTO changed FROM redriven;
  RETURN changed;
END
$outbox$;

-- Deletes dead letters for good. A null argument does not filter.
CREATE OR REPLACE FUNCTION public.outbox_discard(
  ids uuid[], of_type text, matching text, failed_after timestamptz, failed_before timestamptz, batch_size integer)
RETURNS uuid[]
LANGUAGE plpgsql
SET search_path = ''
AS $outbox$
DECLARE
  changed uuid[];
BEGIN
  WITH discarded AS (
    DELETE FROM public.outbox_events AS event
    WHERE event.ctid = ANY (ARRAY(
            SELECT dead.ctid
            FROM public.outbox_events AS dead
            WHERE dead.status = 'FAILED'
              AND (ids IS NULL OR dead.id = ANY (ids))
              AND (of_type IS NULL OR dead.event_type = of_type)
              AND (matching IS NULL OR strpos(lower(dead.event_type), lower(matching)) > 0
                                    OR strpos(lower(dead.last_error), lower(matching)) > 0)
              AND (failed_after IS NULL OR dead.processed_at >= failed_after)
              AND (failed_before IS NULL OR dead.processed_at < failed_before)
            ORDER BY dead.processed_at
            LIMIT batch_size
            FOR UPDATE SKIP LOCKED))
    RETURNING event.id
  )
  SELECT coalesce(array_agg(discarded.id), '{}') INTO changed FROM discarded;
  RETURN changed;
END
$outbox$;

-- Deletes finished rows that are old enough. PENDING and PROCESSING are not touched, whatever their count: what can
-- be retried never dies.
CREATE OR REPLACE FUNCTION public.outbox_prune(of_status text, older_than_ms float8, batch_size integer)
RETURNS integer
LANGUAGE sql
SET search_path = ''
AS $outbox$
  WITH pruned AS (
    DELETE FROM public.outbox_events AS event
    WHERE event.ctid = ANY (ARRAY(
            SELECT old.ctid
            FROM public.outbox_events AS old
            WHERE old.status = of_status
              AND old.status IN ('COMPLETED', 'FAILED')
              AND old.processed_at < now() - older_than_ms * interval '1 millisecond'
            ORDER BY old.processed_at
            LIMIT batch_size
            FOR UPDATE SKIP LOCKED))
    RETURNING 1
  )
  SELECT count(*)::integer FROM pruned;
$outbox$;

-- Dead letters, newest first. (before_time, before_id) is the last row of the page before.
CREATE OR REPLACE FUNCTION public.outbox_dead_letters(
  ids uuid[], of_type text, matching text, failed_after timestamptz, failed_before timestamptz,
  before_time timestamptz, before_id uuid, page_size integer)
RETURNS SETOF public.outbox_events
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $outbox$
BEGIN
  RETURN QUERY
  SELECT event.*
  FROM public.outbox_events AS event
  WHERE event.status = 'FAILED'
    AND (ids IS NULL OR event.id = ANY (ids))
    AND (of_type IS NULL OR event.event_type = of_type)
    AND (matching IS NULL OR strpos(lower(event.event_type), lower(matching)) > 0
                          OR strpos(lower(event.last_error), lower(matching)) > 0)
    AND (failed_after IS NULL OR event.processed_at >= failed_after)
    AND (failed_before IS NULL OR event.processed_at < failed_before)
    AND (before_time IS NULL OR (event.processed_at, event.id) < (before_time, before_id))
  ORDER BY event.processed_at DESC, event.id DESC
  LIMIT page_size;
END
$outbox$;

-- Counts, cheap enough to ask every few seconds: partial indexes only, and an estimate for what is done.
CREATE OR REPLACE FUNCTION public.outbox_stats()
RETURNS jsonb
LANGUAGE sql
STABLE
SET search_path = ''
AS $outbox$
  WITH pending AS (
    SELECT count(*) FILTER (WHERE event.scheduled_at <= now()) AS due,
           count(*) FILTER (WHERE event.scheduled_at > now()) AS scheduled,
           min(event.scheduled_at) AS first_scheduled_at
    FROM public.outbox_events AS event
    WHERE event.status = 'PENDING'
  ), processing AS (
    SELECT count(*) AS total FROM public.outbox_events AS event WHERE event.status = 'PROCESSING'
  ), failed AS (
    SELECT count(*) AS total FROM public.outbox_events AS event WHERE event.status = 'FAILED'
  ), unheard AS (
    SELECT coalesce(jsonb_object_agg(waiting.event_type, waiting.total), '{}') AS by_type
    FROM (
      SELECT event.event_type, count(*) AS total
      FROM public.outbox_events AS event
      WHERE event.unheard_since IS NOT NULL AND event.status = 'PENDING'
      GROUP BY event.event_type
    ) AS waiting
  )
  SELECT jsonb_build_object(
    'due', pending.due,
    'scheduled', pending.scheduled,
    'processing', processing.total,
    'failed', failed.total,
    'completed_estimate', CASE WHEN class.reltuples >= 0 THEN
      greatest(0, class.reltuples::bigint - pending.due - pending.scheduled - processing.total - failed.total) END,
    'oldest_due_age_ms', CASE WHEN pending.first_scheduled_at <= now() THEN
      extract(epoch FROM now() - pending.first_scheduled_at)::float8 * 1000 END,
    'unheard', unheard.by_type)
  FROM pending, processing, failed, unheard, pg_class AS class
  WHERE class.oid = 'public.outbox_events'::regclass;
$outbox$;

INSERT INTO public.outbox_migrations (version, name)
VALUES (2, 'outbox_functions')
ON CONFLICT (version) DO NOTHING;
