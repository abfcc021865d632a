import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { eventTypeProblem } from '../../src/event/event-type.js';
import { migrate } from '../../src/schema/migrate.js';
import { sqlNames } from '../../src/store/postgres/sql-names.js';
import { createDatabase, type TestDatabase } from '../support/database.js';

interface StoredRow {
  id: string;
  event_type: string;
  payload: unknown;
  metadata: unknown;
  status: string;
  scheduled_at: Date;
  created_at: Date;
}

describe.each([
  [14, 'public', 'outbox_events'],
  [18, 'public', 'outbox_events'],
  [18, 'tenant-1', 'billing_events'],
] as const)('SQL of the user’s own on PostgreSQL %i, in %s.%s', (major, schema, table) => {
  const names = sqlNames(schema, table);
  const enqueueName = names.qualified('enqueue');
  const triggerName = names.qualified('enqueue_row');
  let database: TestDatabase;

  beforeAll(async () => {
    database = await createDatabase(major);
    await migrate(database.pool, names);
    await database.query(
      'CREATE TABLE quotes (id uuid PRIMARY KEY, supplier_id bigint, note text)',
    );
  });
  beforeEach(async () => {
    await database.query(`TRUNCATE ${names.events}, quotes`);
    await database.query('DROP TRIGGER IF EXISTS tell ON quotes');
  });
  afterAll(() => database.drop());

  async function events(): Promise<StoredRow[]> {
    return database.query<StoredRow>(
      `SELECT * FROM ${names.events} ORDER BY created_at, event_type`,
    );
  }

  describe('outbox_enqueue', () => {
    const enqueue = async (args: string, values: unknown[] = []): Promise<string> => {
      const [row] = await database.query<{ id: string }>(
        `SELECT ${enqueueName}(${args}) AS id`,
        values,
      );
      return row!.id;
    };

    it('stores an event that is due at once, and answers its id', async () => {
      const id = await enqueue(`'quote.created', jsonb_build_object('quoteId', 7)`);
      const [event] = await events();
      expect(event).toMatchObject({
        id,
        event_type: 'quote.created',
        payload: { quoteId: 7 },
        metadata: {},
        status: 'PENDING',
      });
      expect(event!.scheduled_at).toEqual(event!.created_at);
    });

    it('takes metadata, a time to the microsecond and an id, by name too', async () => {
      const id = randomUUID();
      const moment = '2031-02-03T04:05:06.123456Z';
      expect(
        await enqueue(`'a', '{}', id => $1, scheduled_at => $2, metadata => '{"traceId":"t"}'`, [
          id,
          moment,
        ]),
      ).toBe(id);
      const rows = await database.query(
        `SELECT metadata, scheduled_at = $1 AS exact FROM ${names.events}`,
        [moment],
      );
      expect(rows).toEqual([{ metadata: { traceId: 't' }, exact: true }]);
    });

    it('stores an id once, answers it again, and leaves the transaction usable', async () => {
      const id = randomUUID();
      await enqueue(`'a', '{"first": true}', id => $1`, [id]);
      expect(await enqueue(`'a', '{"first": false}', id => $1`, [id])).toBe(id);
      expect(await events()).toMatchObject([{ payload: { first: true } }]);
    });

    it('takes NULL for what may be left out', async () => {
      await enqueue(`'a', '{}', NULL, NULL, NULL`);
      expect(await events()).toMatchObject([{ metadata: {} }]);
    });

    it('is part of the transaction it is called in', async () => {
      const failing = database.query(
        `DO $$ BEGIN PERFORM ${enqueueName}('a', '{}'); RAISE 'changed my mind'; END $$`,
      );
      await expect(failing).rejects.toThrow('changed my mind');
      expect(await events()).toEqual([]);
    });

    it.each([
      ['a list', `'a', '[1]'`, 'payload must be a JSON object, got array'],
      ['a scalar', `'a', '"x"'`, 'payload must be a JSON object, got string'],
      ['JSON null', `'a', 'null'`, 'payload must be a JSON object, got null'],
      ['no payload', `'a', NULL`, 'payload must be a JSON object, got NULL'],
      ['the outbox’s own key', `'a', '{"_outbox": 1}'`, 'payload must not have the keys _outbox'],
      ['the other one', `'a', '{"_outboxFailed": 1}'`, 'payload must not have the keys _outbox'],
      [
        'metadata that are no object',
        `'a', '{}', '[]'`,
        'metadata must be a JSON object, got array',
      ],
      ['no type', `NULL, '{}'`, 'event_type must not be empty, got NULL'],
      [
        'a time without end',
        `'a', '{}', scheduled_at => 'infinity'`,
        'scheduled_at must lie in the',
      ],
      [
        'a time before all',
        `'a', '{}', scheduled_at => '4713-01-01 BC'`,
        'scheduled_at must lie in',
      ],
    ])('refuses %s, with what to do', async (_, args, message) => {
      const refused = enqueue(args);
      await expect(refused).rejects.toThrow(message);
      await expect(refused).rejects.toMatchObject({ code: '22023', hint: expect.any(String) });
      expect(await events()).toEqual([]);
    });

    it('refuses the same event types as TypeScript does', async () => {
      const types = [
        ...Object.getOwnPropertyNames(Object.prototype),
        ...Object.getOwnPropertyNames(Object.prototype).map((name) => `quote.${name}.x`),
        '',
        ' ',
        '\t\n',
        'error',
        'newListener',
        'removeListener',
        'outbox.dead_letter',
        'x'.repeat(255),
        'x'.repeat(256),
        '😀'.repeat(255),
        '😀'.repeat(256),
        'a',
        'errors',
        'quote.constructors',
        '견적.요청',
        `it's "a"; --`,
        'a..b',
      ];
      const stored: string[] = [];
      for (const type of types) {
        await enqueue('$1, $2', [type, {}]).then(
          () => stored.push(type),
          () => {},
        );
      }
      expect(stored).toEqual(types.filter((type) => eventTypeProblem(type) === undefined));
      expect(stored).toHaveLength(8);
    });
  });

  describe('outbox_enqueue_row', () => {
    const attach = async (when: string, args: string): Promise<void> => {
      await database.query(`CREATE TRIGGER tell ${when} EXECUTE FUNCTION ${triggerName}(${args})`);
    };
    const insert = async (id = randomUUID()): Promise<string> => {
      await database.query(`INSERT INTO quotes VALUES ($1, 42, '{"not": "parsed"}')`, [id]);
      return id;
    };

    it('enqueues an event for each row that is inserted, with the chosen columns', async () => {
      await attach('AFTER INSERT ON quotes FOR EACH ROW', `'quote.created', 'quoteId:id', 'note'`);
      await database.query(`INSERT INTO quotes VALUES ($1, 1, 'a'), ($2, 2, NULL)`, [
        randomUUID(),
        randomUUID(),
      ]);
      const stored = await events();
      expect(stored.map(({ payload }) => payload)).toEqual(
        expect.arrayContaining([
          { quoteId: expect.any(String), note: 'a' },
          { quoteId: expect.any(String), note: null },
        ]),
      );
      expect(stored).toHaveLength(2);
      expect(stored[0]).toMatchObject({
        event_type: 'quote.created',
        metadata: { operation: 'INSERT', table: 'public.quotes' },
      });
    });

    it('tells the new values of a row that changes, when its trigger fires', async () => {
      await attach(
        'AFTER UPDATE OF note ON quotes FOR EACH ROW WHEN (OLD.note IS DISTINCT FROM NEW.note)',
        `'quote.changed', 'id', 'note', 'supplier_id'`,
      );
      const id = await insert();
      await database.query(`UPDATE quotes SET supplier_id = 43`);
      await database.query(`UPDATE quotes SET note = note`);
      await database.query(`UPDATE quotes SET note = '10.50'`);
      expect(await events()).toMatchObject([
        {
          payload: { id, note: '10.50', supplier_id: 43 },
          metadata: { operation: 'UPDATE', table: 'public.quotes' },
        },
      ]);
    });

    it('tells the old values of a row that is deleted', async () => {
      await attach('AFTER DELETE ON quotes FOR EACH ROW', `'quote.deleted', 'id', 'note'`);
      const id = await insert();
      await database.query('DELETE FROM quotes');
      expect(await events()).toMatchObject([
        {
          payload: { id, note: '{"not": "parsed"}' },
          metadata: { operation: 'DELETE', table: 'public.quotes' },
        },
      ]);
    });

    it('serves several operations with one trigger', async () => {
      await attach('AFTER INSERT OR DELETE ON quotes FOR EACH ROW', `'quote.moved', 'id'`);
      await insert();
      await database.query('DELETE FROM quotes');
      expect((await events()).map(({ metadata }) => metadata)).toEqual([
        { operation: 'INSERT', table: 'public.quotes' },
        { operation: 'DELETE', table: 'public.quotes' },
      ]);
    });

    it('rolls back with the row, and the row with it', async () => {
      await attach('AFTER INSERT ON quotes FOR EACH ROW', `'quote.created', 'id'`);
      const failing = database.query(
        `DO $$ BEGIN INSERT INTO quotes VALUES (gen_random_uuid()); RAISE 'changed my mind'; END $$`,
      );
      await expect(failing).rejects.toThrow('changed my mind');
      expect(await events()).toEqual([]);

      await database.query('DROP TRIGGER tell ON quotes');
      await attach('AFTER INSERT ON quotes FOR EACH ROW', `'constructor', 'id'`);
      await expect(insert()).rejects.toThrow(/event_type 'constructor' contains a name/);
      expect(await database.query('SELECT 1 FROM quotes')).toEqual([]);
    });

    it.each([
      [
        'BEFORE INSERT ON quotes FOR EACH ROW',
        `'a', 'id'`,
        'trigger tell on public.quotes must be AFTER … FOR EACH ROW, it is BEFORE ROW',
      ],
      [
        'AFTER INSERT ON quotes FOR EACH STATEMENT',
        `'a', 'id'`,
        'trigger tell on public.quotes must be AFTER … FOR EACH ROW, it is AFTER STATEMENT',
      ],
      [
        'AFTER INSERT ON quotes FOR EACH ROW',
        `'a'`,
        'must name the event type and at least one column',
      ],
      [
        'AFTER INSERT ON quotes FOR EACH ROW',
        '',
        'must name the event type and at least one column',
      ],
      [
        'AFTER INSERT ON quotes FOR EACH ROW',
        `'a', 'x:nope'`,
        'names the column nope, which the table',
      ],
      ...["'id', 'id:id'", "':id'", "'id:'", "'a:b:id'"].map((columns) => [
        'AFTER INSERT ON quotes FOR EACH ROW',
        `'a', ${columns}`,
        'is no column or gives a key twice',
      ]),
      [
        'AFTER INSERT ON quotes FOR EACH ROW',
        `'a', '_outbox:id'`,
        'payload must not have the keys',
      ],
    ])('refuses %s (%s), with what to do', async (when, args, message) => {
      await attach(when, args);
      const refused = insert();
      await expect(refused).rejects.toThrow(message);
      await expect(refused).rejects.toMatchObject({ hint: expect.any(String) });
    });
  });
});
