import type { TestDatabase } from '../support/database.js';

const ERRORS = [
  'NotificationListener.notify: GatewayError: 503 Service Unavailable from https://gateway.example/messages',
  'LedgerListener.post: account 4711 is closed',
  'NotificationListener.notify: NonRetryableError: "02-abc" is not a phone number',
];

/** A database as it looks after a busy day: what the screenshots show. Written past the relay, for the past's sake. */
export async function fillAsAfterABusyDay(db: TestDatabase): Promise<void> {
  await db.query(
    `INSERT INTO outbox_activity (minute, event_type, relay_id, delivered, retried, failed)
     SELECT date_trunc('minute', now()) - n * interval '1 minute', type, gen_random_uuid(),
            greatest(0, round(scale * (1.6 + sin(n / 170.0) + sin(n / 23.0 + scale) / 3 + sin(n / 2.1 + scale) / 9)))::int,
            CASE WHEN n % 500 BETWEEN 20 AND 39 THEN round(scale / 9)::int ELSE 0 END,
            CASE WHEN n % 500 BETWEEN 24 AND 31 THEN 1 ELSE 0 END
     FROM generate_series(0, 1459) AS n, -- the oldest step of ten minutes began before the day
          (VALUES ('quote_request.created', 42), ('order.paid', 27), ('invoice.issued', 11)) AS t (type, scale)`,
  );
  await db.query(
    `INSERT INTO outbox_relays (relay_id, name, version, listeners, reports, started_at, seen_at, stopped_at)
     VALUES (gen_random_uuid(), 'api-7c9f:1', '0.1.0', $1, 40, now() - interval '3 hours', now() - interval '4 seconds', NULL),
            (gen_random_uuid(), 'api-b21e:1', '0.1.0', $1, 38, now() - interval '3 hours', now() - interval '9 seconds', NULL),
            (gen_random_uuid(), 'api-11d0:1', '0.1.0', $1, 90, now() - interval '9 hours', now() - interval '3 hours', now() - interval '3 hours')`,
    [
      JSON.stringify([
        { name: 'NotificationListener.notify', event: 'quote_request.created' },
        { name: 'LedgerListener.post', event: 'order.paid' },
      ]),
    ],
  );
  await db.query(
    `INSERT INTO outbox_sentinels (key, version, stamped_at, failures, same_failures, last_error, last_error_kind, failed_at, closed_at, closed_until, closings)
     VALUES ('records:tenant-7', '1', now() - interval '2 hours', 0, 0, NULL, NULL, NULL, NULL, NULL, 0),
            ('records:tenant-9', '1', NULL, 3, 3, 'column "sku" does not exist', 'deterministic', now() - interval '1 minute', now() - interval '1 minute', now() + interval '20 minutes', 1)`,
  );
  await db.query(
    `INSERT INTO outbox_events (event_type, payload, metadata, status, retry_count, last_error, acknowledged_by, processed_at, created_at)
     SELECT (ARRAY['quote_request.created', 'order.paid', 'quote_request.created'])[1 + n % 3],
            jsonb_build_object('quoteRequestId', gen_random_uuid(), 'projectName', 'Office lobby, 3rd floor',
                               'customer', jsonb_build_object('name', 'Kim Minji', 'phone', '010-1234-5678'),
                               'items', jsonb_build_array(jsonb_build_object('sku', 'TILE-60', 'quantity', 120))),
            jsonb_build_object('requestId', gen_random_uuid(), 'source', 'web'),
            'FAILED', 5, ($1::text[])[1 + n % 3], CASE WHEN n % 3 = 0 THEN ARRAY['AuditListener.record'] ELSE '{}' END,
            now() - n * interval '7 minutes', now() - n * interval '7 minutes' - interval '30 minutes'
     FROM generate_series(1, 58) AS n`,
    [ERRORS],
  );
  await db.query(
    `INSERT INTO outbox_events (event_type, payload, scheduled_at, retry_count)
     SELECT 'reminder.due', '{}', now() + n * interval '3 hours', n % 2 FROM generate_series(1, 214) AS n`,
  );
  await db.query(
    `INSERT INTO outbox_events (event_type, payload, scheduled_at)
     SELECT 'order.paid', '{}', now() - n * interval '1 second' FROM generate_series(1, 6) AS n`,
  );
  await db.query(
    `INSERT INTO outbox_events (event_type, payload, status, lease_token, leased_until)
     SELECT 'invoice.issued', '{}', 'PROCESSING', gen_random_uuid(), now() + interval '1 minute' FROM generate_series(1, 4)`,
  );
  await db.query(
    `INSERT INTO outbox_events (event_type, payload, status, processed_at)
     SELECT 'order.paid', '{}', 'COMPLETED', now() - n * interval '1 second' FROM generate_series(1, 20000) AS n`,
  );
  await db.query('VACUUM ANALYZE outbox_events');
}
