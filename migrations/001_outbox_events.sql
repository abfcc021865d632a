-- The outbox table and its indexes.
--
-- Runs as it lies (psql -f, or pasted into the Supabase SQL editor), in one transaction, twice without harm.
-- PostgreSQL 14 or newer. Needs CREATE on schema public. Takes no lock on any table but its own.

CREATE TABLE IF NOT EXISTS public.outbox_migrations (
  version       integer     PRIMARY KEY,
  name          text        NOT NULL,
  applied_at    timestamptz NOT NULL DEFAULT now(),
  breaks_before integer     NOT NULL DEFAULT 0
);

COMMENT ON COLUMN public.outbox_migrations.breaks_before IS
  'Code written for a version below this cannot work any more; 0: the old and the new code work side by side.';

CREATE TABLE IF NOT EXISTS public.outbox_events (
  id              uuid         PRIMARY KEY DEFAULT gen_random_uuid(),
  event_type      varchar(255) NOT NULL,
  payload         jsonb        NOT NULL,
  metadata        jsonb        NOT NULL DEFAULT '{}',
  status          varchar(50)  NOT NULL DEFAULT 'PENDING',
  retry_count     integer      NOT NULL DEFAULT 0,
  last_error      text,
  created_at      timestamptz  NOT NULL DEFAULT now(),
  processed_at    timestamptz,
  scheduled_at    timestamptz  NOT NULL DEFAULT now(),
  acknowledged_by text[]       NOT NULL DEFAULT '{}',
  lease_token     uuid,
  leased_until    timestamptz,
  unheard_since   timestamptz,
  previous_lives  jsonb        NOT NULL DEFAULT '[]',

  CONSTRAINT outbox_events_status_known
    CHECK (status IN ('PENDING', 'PROCESSING', 'COMPLETED', 'FAILED')),
  CONSTRAINT outbox_events_count_not_negative
    CHECK (retry_count >= 0),
  -- A lease exactly while PROCESSING: no row can be in a place that neither the claim nor the reaper looks at.
  CONSTRAINT outbox_events_lease_while_processing
    CHECK ((status = 'PROCESSING') = (lease_token IS NOT NULL)
       AND (status = 'PROCESSING') = (leased_until IS NOT NULL)),
  -- Pruning counts from processed_at: a finished row without it would stay for ever.
  CONSTRAINT outbox_events_finished_has_time
    CHECK (status NOT IN ('COMPLETED', 'FAILED') OR processed_at IS NOT NULL)
)
-- Each event leaves two dead row versions, and claims walk past their index entries until a vacuum. By default it comes
-- when a fifth of the table is dead, which is far too late beside millions of finished rows.
WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_insert_scale_factor = 0.05);

COMMENT ON TABLE  public.outbox_events                 IS 'Transactional outbox: events stored beside the data they speak of, delivered by a relay.';
COMMENT ON COLUMN public.outbox_events.status          IS 'PENDING, PROCESSING (under a lease), COMPLETED, or FAILED (a dead letter).';
COMMENT ON COLUMN public.outbox_events.retry_count     IS 'Failed attempts in this life of the event.';
COMMENT ON COLUMN public.outbox_events.scheduled_at    IS 'Due from this moment on.';
COMMENT ON COLUMN public.outbox_events.processed_at    IS 'When it was completed or set aside.';
COMMENT ON COLUMN public.outbox_events.acknowledged_by IS 'Listeners that have succeeded and are not called again.';
COMMENT ON COLUMN public.outbox_events.lease_token     IS 'Who holds the row; every change to a claimed row names it.';
COMMENT ON COLUMN public.outbox_events.unheard_since   IS 'Since when it has been due without anybody listening to its type.';
COMMENT ON COLUMN public.outbox_events.previous_lives  IS 'What became of it before each redrive, oldest first.';

-- The heart of polling: only what waits, in the order it is due.
CREATE INDEX IF NOT EXISTS idx_outbox_events_status_scheduled
  ON public.outbox_events (status, scheduled_at)
  WHERE status = 'PENDING';

-- Fairness: the oldest of each event type, however many of another type are due before it.
CREATE INDEX IF NOT EXISTS idx_outbox_events_type_scheduled
  ON public.outbox_events (event_type, scheduled_at)
  WHERE status = 'PENDING';

-- The reaper's: a handful of rows at any time.
CREATE INDEX IF NOT EXISTS idx_outbox_events_leased_until
  ON public.outbox_events (leased_until)
  WHERE status = 'PROCESSING';

-- Pruning and the list of dead letters. Rows settled together share one processed_at, which the B-tree stores once.
CREATE INDEX IF NOT EXISTS idx_outbox_events_processed
  ON public.outbox_events (status, processed_at)
  WHERE status IN ('COMPLETED', 'FAILED');

-- Event types that wait for a listener: empty in a healthy system.
CREATE INDEX IF NOT EXISTS idx_outbox_events_unheard
  ON public.outbox_events (event_type)
  WHERE unheard_since IS NOT NULL AND status = 'PENDING';

INSERT INTO public.outbox_migrations (version, name)
VALUES (1, 'outbox_events')
ON CONFLICT (version) DO NOTHING;
