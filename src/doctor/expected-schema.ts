// Made by test/schema/schema-for-doctor.test.ts (UPDATE_SCHEMA=1) from what the migrations make. Not written by hand.

export const EXPECTED_TABLES: readonly string[] = [
  "outbox_activity",
  "outbox_events",
  "outbox_inbox",
  "outbox_migrations",
  "outbox_relays",
  "outbox_sentinels"
];

export const EXPECTED_INDEXES: Readonly<Record<string, string>> = {
  "idx_outbox_events_leased_until": "CREATE INDEX idx_outbox_events_leased_until ON public.outbox_events USING btree (leased_until) WHERE ((status)::text = 'PROCESSING'::text)",
  "idx_outbox_events_processed": "CREATE INDEX idx_outbox_events_processed ON public.outbox_events USING btree (status, processed_at) WHERE ((status)::text = ANY ((ARRAY['COMPLETED'::character varying, 'FAILED'::character varying])::text[]))",
  "idx_outbox_events_status_scheduled": "CREATE INDEX idx_outbox_events_status_scheduled ON public.outbox_events USING btree (status, scheduled_at) WHERE ((status)::text = 'PENDING'::text)",
  "idx_outbox_events_type_scheduled": "CREATE INDEX idx_outbox_events_type_scheduled ON public.outbox_events USING btree (event_type, scheduled_at) WHERE ((status)::text = 'PENDING'::text)",
  "idx_outbox_events_unheard": "CREATE INDEX idx_outbox_events_unheard ON public.outbox_events USING btree (event_type) WHERE ((unheard_since IS NOT NULL) AND ((status)::text = 'PENDING'::text))",
  "idx_outbox_inbox_handled": "CREATE INDEX idx_outbox_inbox_handled ON public.outbox_inbox USING btree (handled_at)",
  "idx_outbox_sentinels_failing": "CREATE INDEX idx_outbox_sentinels_failing ON public.outbox_sentinels USING btree (failed_at) WHERE (failures > 0)"
};

export const EXPECTED_CONSTRAINTS: Readonly<Record<string, { readonly table: string; readonly definition: string }>> = {
  "outbox_activity_pkey": {
    "table": "outbox_activity",
    "definition": "PRIMARY KEY (minute, event_type, relay_id)"
  },
  "outbox_events_count_not_negative": {
    "table": "outbox_events",
    "definition": "CHECK ((retry_count >= 0))"
  },
  "outbox_events_finished_has_time": {
    "table": "outbox_events",
    "definition": "CHECK ((((status)::text <> ALL ((ARRAY['COMPLETED'::character varying, 'FAILED'::character varying])::text[])) OR (processed_at IS NOT NULL)))"
  },
  "outbox_events_lease_while_processing": {
    "table": "outbox_events",
    "definition": "CHECK (((((status)::text = 'PROCESSING'::text) = (lease_token IS NOT NULL)) AND (((status)::text = 'PROCESSING'::text) = (leased_until IS NOT NULL))))"
  },
  "outbox_events_pkey": {
    "table": "outbox_events",
    "definition": "PRIMARY KEY (id)"
  },
  "outbox_events_status_known": {
    "table": "outbox_events",
    "definition": "CHECK (((status)::text = ANY ((ARRAY['PENDING'::character varying, 'PROCESSING'::character varying, 'COMPLETED'::character varying, 'FAILED'::character varying])::text[])))"
  },
  "outbox_inbox_pkey": {
    "table": "outbox_inbox",
    "definition": "PRIMARY KEY (event_id, consumer)"
  },
  "outbox_migrations_pkey": {
    "table": "outbox_migrations",
    "definition": "PRIMARY KEY (version)"
  },
  "outbox_relays_pkey": {
    "table": "outbox_relays",
    "definition": "PRIMARY KEY (relay_id)"
  },
  "outbox_sentinels_closed_check": {
    "table": "outbox_sentinels",
    "definition": "CHECK (((closed_at IS NULL) = (closed_until IS NULL)))"
  },
  "outbox_sentinels_kind_check": {
    "table": "outbox_sentinels",
    "definition": "CHECK ((last_error_kind = ANY (ARRAY['transient'::text, 'deterministic'::text, 'unknown'::text])))"
  },
  "outbox_sentinels_lease_check": {
    "table": "outbox_sentinels",
    "definition": "CHECK (((lease_token IS NULL) = (leased_until IS NULL)))"
  },
  "outbox_sentinels_pkey": {
    "table": "outbox_sentinels",
    "definition": "PRIMARY KEY (key, version)"
  }
};

// The source of each, hashed.
export const EXPECTED_FUNCTIONS: Readonly<Record<string, string>> = {
  "outbox_activity_list(since_ms double precision, step_ms double precision, of_type text)": "11ca8d6c3d07a24e",
  "outbox_announce_as_json(channel text)": "83d276ca0e0d1b5e",
  "outbox_claim(batch_size integer, lease_ms double precision, new_lease_token uuid, not_before timestamp with time zone)": "b9e5615a60572d84",
  "outbox_claim_as_json(batch_size integer, lease_ms double precision, new_lease_token uuid, not_before timestamp with time zone)": "5ed6b7e7d17e717e",
  "outbox_claim_others(other_than text[], batch_size integer, lease_ms double precision, new_lease_token uuid)": "9538dde897210f4f",
  "outbox_claim_others_as_json(other_than text[], batch_size integer, lease_ms double precision, new_lease_token uuid)": "6d98b79105823b66",
  "outbox_count_dead_letters_as_json(ids uuid[], of_type text, matching text, failed_after timestamp with time zone, failed_before timestamp with time zone)": "e859915c6187ffa2",
  "outbox_dead_letters(ids uuid[], of_type text, matching text, failed_after timestamp with time zone, failed_before timestamp with time zone, before_time timestamp with time zone, before_id uuid, page_size integer)": "7c8e8d7daf6eaed2",
  "outbox_dead_letters_as_json(ids uuid[], of_type text, matching text, failed_after timestamp with time zone, failed_before timestamp with time zone, before_time timestamp with time zone, before_id uuid, page_size integer)": "aae68fc2eda1c985",
  "outbox_discard(ids uuid[], of_type text, matching text, failed_after timestamp with time zone, failed_before timestamp with time zone, batch_size integer)": "6d1772e708fa42e0",
  "outbox_enqueue(event_type text, payload jsonb, metadata jsonb, scheduled_at timestamp with time zone, id uuid)": "5e23a9f9a7222411",
  "outbox_enqueue(events jsonb)": "09b24a845a433d1f",
  "outbox_enqueue_one(event_id uuid, of_type text, content jsonb, about jsonb, due_at timestamp with time zone, delay_ms double precision)": "379dadb5194fe7b2",
  "outbox_enqueue_row()": "676fefcf2211fff7",
  "outbox_find_as_json(event_id uuid)": "d146cd2741f6b49a",
  "outbox_inbox_prune(older_than_ms double precision, batch_size integer)": "05d6c4d5442b2b37",
  "outbox_inbox_record(event_id uuid, consumer text)": "ab428a99c9a39989",
  "outbox_list(of_state text, of_type text, after_time timestamp with time zone, after_id uuid, page_size integer)": "daef90b5ab5235cf",
  "outbox_prune(of_status text, older_than_ms double precision, batch_size integer)": "952eab9a60d76ad0",
  "outbox_reap(batch_size integer, lease_ms double precision, new_lease_token uuid)": "377e838c164866e2",
  "outbox_reap_as_json(batch_size integer, lease_ms double precision, new_lease_token uuid)": "0109da09181d0d65",
  "outbox_redrive(ids uuid[], of_type text, matching text, failed_after timestamp with time zone, failed_before timestamp with time zone, batch_size integer, first_delay_ms double precision, spacing_ms double precision)": "d17e16238854f2fc",
  "outbox_relay_list()": "2a85cc5927453f29",
  "outbox_renew(leases jsonb, lease_ms double precision)": "7630c12b024bf66b",
  "outbox_report(report jsonb)": "fe06a9dc45d53491",
  "outbox_sentinel_claim(key text, version text, heed_stamp boolean, lease_token uuid, lease_ms double precision)": "3b2e68ca425eda4d",
  "outbox_sentinel_fail(key text, version text, lease_token uuid, failures integer, same_failures integer, error text, kind text, close_ms double precision)": "9949d6d8be24c24c",
  "outbox_sentinel_fail_as_json(key text, version text, lease_token uuid, failures integer, same_failures integer, error text, kind text, close_ms double precision)": "cbaff56a1b77f844",
  "outbox_sentinel_list(key text, only_failing boolean, batch_size integer)": "8b9d8985f6a6cf24",
  "outbox_sentinel_release(key text, version text, lease_token uuid)": "0c5e01d35a8c0716",
  "outbox_sentinel_renew(key text, version text, lease_token uuid, lease_ms double precision)": "0fcd493874059bce",
  "outbox_sentinel_reopen(key text, version text)": "8b21c53c2fec2790",
  "outbox_sentinel_stamp(key text, version text, lease_token uuid, stamped boolean)": "0305394e1fdd21fd",
  "outbox_sentinel_stats()": "4a90db52593cc769",
  "outbox_settle(settlements jsonb)": "a12a81139e07316d",
  "outbox_settle_and_claim(completed uuid[], tokens uuid[], settlements jsonb, batch_size integer, lease_ms double precision, new_lease_token uuid, not_before timestamp with time zone)": "6103dad9895c9677",
  "outbox_settle_and_claim_as_json(completed uuid[], tokens uuid[], settlements jsonb, batch_size integer, lease_ms double precision, new_lease_token uuid, not_before timestamp with time zone)": "c1647538a9c7f8f6",
  "outbox_stats()": "17cd417858875897",
  "outbox_version_as_json()": "a49b2afc7040f27e"
};
