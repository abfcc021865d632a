-- The inbox: which consumer has already done which event. A row is written in the transaction of the work itself.
--
-- If the application connects as a role that does not own the tables, give it (beside what 003 names):
--   GRANT SELECT, INSERT, UPDATE, DELETE ON public.outbox_inbox TO app;
--   GRANT EXECUTE ON FUNCTION public.outbox_inbox_record(uuid, text) TO app;
--   GRANT EXECUTE ON FUNCTION public.outbox_inbox_prune(float8, integer) TO app;
--   CREATE POLICY app_uses_inbox ON public.outbox_inbox TO app USING (true) WITH CHECK (true);
-- Runs as it lies, in one transaction, twice without harm.

CREATE TABLE IF NOT EXISTS public.outbox_inbox (
  event_id   uuid        NOT NULL,
  consumer   text        NOT NULL,
  handled_at timestamptz NOT NULL DEFAULT now(),

  CONSTRAINT outbox_inbox_pkey
    PRIMARY KEY (event_id, consumer)
);

COMMENT ON TABLE  public.outbox_inbox            IS 'Inbox: events that a consumer has done, so that a second delivery does nothing.';
COMMENT ON COLUMN public.outbox_inbox.event_id   IS 'The id of the event; not a reference, for the event may be pruned first, or come from elsewhere.';
COMMENT ON COLUMN public.outbox_inbox.consumer   IS 'Who did it, by a name that stays the same.';

-- Pruning.
CREATE INDEX IF NOT EXISTS idx_outbox_inbox_handled
  ON public.outbox_inbox (handled_at);

-- Records that a consumer does an event. While another transaction does the same, this one waits for its end.
-- Not by way of a unique violation: caught or not, that leaves the transaction aborted.
--   returns whether it is the first time
CREATE OR REPLACE FUNCTION public.outbox_inbox_record(event_id uuid, consumer text)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $outbox$
#variable_conflict use_variable
BEGIN
  INSERT INTO public.outbox_inbox AS handled (event_id, consumer)
  VALUES (event_id, consumer)
  ON CONFLICT ON CONSTRAINT outbox_inbox_pkey DO NOTHING;
  RETURN FOUND;
END
$outbox$;

-- Deletes rows that are old enough, except of events that can still be delivered: a dead letter may be redriven long
-- after one of its consumers has done it.
CREATE OR REPLACE FUNCTION public.outbox_inbox_prune(older_than_ms float8, batch_size integer)
RETURNS integer
LANGUAGE sql
SET search_path = ''
AS $outbox$
  WITH pruned AS (
    DELETE FROM public.outbox_inbox AS handled
    WHERE handled.ctid = ANY (ARRAY(
            SELECT old.ctid
            FROM public.outbox_inbox AS old
            WHERE old.handled_at < now() - older_than_ms * interval '1 millisecond'
              AND NOT EXISTS (
                    SELECT FROM public.outbox_events AS event
                    WHERE event.id = old.event_id AND event.status <> 'COMPLETED')
            ORDER BY old.handled_at
            LIMIT batch_size
            FOR UPDATE OF old SKIP LOCKED))
    RETURNING 1
  )
  SELECT count(*)::integer FROM pruned;
$outbox$;

ALTER TABLE public.outbox_inbox ENABLE ROW LEVEL SECURITY;

-- Closed by default, as the rest of the outbox is.
DO $outbox$
DECLARE
  stranger text;
  verb     regprocedure;
BEGIN
  FOREACH stranger IN ARRAY ARRAY['public', 'anon', 'authenticated'] LOOP
    CONTINUE WHEN stranger <> 'public' AND NOT EXISTS (SELECT FROM pg_roles WHERE rolname = stranger);
    EXECUTE format('REVOKE ALL ON TABLE %s FROM %s', 'public.outbox_inbox'::regclass, stranger);
  END LOOP;

  FOREACH verb IN ARRAY ARRAY[
    'public.outbox_inbox_record(uuid, text)',
    'public.outbox_inbox_prune(float8, integer)']::regprocedure[]
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
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON TABLE %s TO service_role', 'public.outbox_inbox'::regclass);
  END IF;
END
$outbox$;

INSERT INTO public.outbox_migrations (version, name)
VALUES (4, 'outbox_inbox')
ON CONFLICT (version) DO NOTHING;
