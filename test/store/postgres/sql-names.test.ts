import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { OutboxError } from '../../../src/event/outbox-error.js';
import { migrateOutbox, outboxSql } from '../../../src/schema/migrate-outbox.js';
import { PostgresOutboxStore } from '../../../src/store/postgres/postgres-outbox-store.js';
import { sqlNames } from '../../../src/store/postgres/sql-names.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import { newEvent } from '../conformance/subject.js';

const INJECTION = 'outbox"; DROP TABLE victim; --';

/** Case, length, dots, quotes: everything that ends an identifier, or means something else without quotes. */
const REFUSED_TABLES = [
  INJECTION,
  'outbox_events"; DROP TABLE victim; --',
  "outbox'; DROP TABLE victim; --_events",
  'a"b_events',
  'a.b_events',
  'public.outbox_events',
  'Outbox_events',
  'out box_events',
  '$$; DROP TABLE victim; $$_events',
  'outbox$outbox$_events',
  'outbox_events\n',
  'outbox_events;',
  'outbox',
  'events',
  '_events',
  '1_events',
  '한글_events',
  'a\0_events',
  `${'a'.repeat(34)}_events`,
  `${'a'.repeat(56)}_events`,
  `${'a'.repeat(63)}_events`,
  '',
];
const REFUSED_SCHEMAS = [
  INJECTION,
  'a"b',
  "a'b",
  'a.b',
  'a b',
  'a$$b',
  'a\\b',
  'public\n',
  '-a',
  '1a',
  '한글',
  'a\0b',
  'a'.repeat(64),
  'a'.repeat(70),
  'pg_catalog',
  'pg_temp',
  'information_schema',
  '',
];

describe('names', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createDatabase();
    await database.query('CREATE TABLE victim (id int)');
  });
  afterAll(() => database.drop());
  afterEach(async () => {
    expect(await database.query(`SELECT to_regclass('victim') AS victim`)).toEqual([
      { victim: 'victim' },
    ]);
  });

  it.each(REFUSED_TABLES)('refuse the table %j by a stated rule, before any SQL', async (table) => {
    for (const using of [
      () => sqlNames('public', table),
      () => migrateOutbox({ database: database.pool, table }),
      () => outboxSql({ table }),
    ]) {
      const refusing = (async () => using())();
      await expect(refusing).rejects.toThrow(OutboxError);
      await expect(refusing).rejects.toThrow(/^table must be .*end in "_events".*, got "/);
    }
  });

  it.each(REFUSED_SCHEMAS)(
    'refuse the schema %j by a stated rule, before any SQL',
    async (schema) => {
      for (const using of [
        () => sqlNames(schema),
        () => migrateOutbox({ database: database.pool, schema }),
        () => outboxSql({ schema }),
      ]) {
        const refusing = (async () => using())();
        await expect(refusing).rejects.toThrow(OutboxError);
        await expect(refusing).rejects.toThrow(/^schema must .*, got "/);
      }
    },
  );

  it.each([7, null, {}, ['outbox_events']])('refuse %j, which is no name at all', (value) => {
    const name = value as unknown as string;
    expect(() => sqlNames('public', name)).toThrow(OutboxError);
    expect(() => sqlNames(name)).toThrow(OutboxError);
  });

  it.each([
    ['public', 'outbox_events'],
    ['tenant-1', 'outbox_events'],
    ['Tenant', 'a_events'],
    ['select', 'order_events'],
    ['user', 'user_events'],
    ['a'.repeat(63), `${'b'.repeat(33)}_events`],
  ])('accept %s.%s: two of them side by side work, and nothing is cut', async (schema, table) => {
    const names = sqlNames(schema, table);
    const notices: string[] = [];
    const client = await database.pool.connect();
    client.on('notice', ({ message }) => notices.push(message ?? ''));
    await client.query(await outboxSql({ schema, table }));
    client.release();
    expect(notices.filter((message) => message.includes('truncated'))).toEqual([]);

    const store = new PostgresOutboxStore(database.pool, names);
    await store.check();
    const event = newEvent({ payload: { schema, table } });
    expect(await store.enqueue([event])).toEqual([event.id]);
    expect(await store.claim({ limit: 10, leaseMs: 1_000 })).toMatchObject([{ id: event.id }]);
    const [{ count } = { count: 0 }] = await database.query<{ count: number }>(
      `SELECT count(*)::int FROM ${names.events}`,
    );
    expect(count).toBe(1);
  });
});
