import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { OnEvent } from '@nestjs/event-emitter';
import pg from 'pg';
import { migrateOutbox, OutboxError, type PgTransaction } from '../../src/index.js';
import { InMemoryOutboxStore } from '../../src/testing.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { startApp, type OutboxApp } from '../support/outbox-app.js';

const ID = '11111111-1111-4111-8111-111111111111';
const WHAT_TO_PASS = 'pass the pg client on which you ran BEGIN';

describe.each([14, 18] as const)('tx is a pg client of PostgreSQL %i', (major) => {
  let database: TestDatabase;
  let app: OutboxApp;
  let client: pg.PoolClient;
  const heard: unknown[] = [];

  class Listener {
    @OnEvent('a')
    handle(event: object): void {
      heard.push(event);
    }
  }

  beforeAll(async () => {
    database = await createDatabase(major);
    await migrateOutbox({ database: database.pool });
    await database.query('CREATE TABLE quotes (id integer)');
  });
  beforeEach(async () => {
    await database.query('TRUNCATE outbox_events, quotes');
    app = await startApp({ outbox: { pool: database.pool }, providers: [Listener] });
    client = await database.pool.connect();
    heard.splice(0);
  });
  afterEach(async () => {
    await client.query('ROLLBACK');
    client.release();
    await app.close();
  });
  afterAll(() => database.drop());

  const stored = async (): Promise<number> =>
    Number((await database.query('SELECT count(*) FROM outbox_events'))[0]?.['count']);

  it('committed, the event is there with the data; before that nobody sees either', async () => {
    await client.query('BEGIN');
    await client.query('INSERT INTO quotes VALUES (1)');
    const answer = await app.outbox.enqueue('a', { n: 1 }, { m: 2 }, { tx: client });
    expect(answer).toEqual({ id: expect.any(String), stored: true });
    expect(await stored()).toBe(0);
    expect(await app.outbox.processPending()).toBe(0);

    await client.query('COMMIT');
    expect(await stored()).toBe(1);
    expect(await app.outbox.processPending()).toBe(1);
    expect(heard).toEqual([expect.objectContaining({ n: 1 })]);
  });

  it('rolled back, there is neither', async () => {
    await client.query('BEGIN');
    await client.query('INSERT INTO quotes VALUES (1)');
    await app.outbox.enqueue('a', {}, {}, { tx: client });
    await app.outbox.enqueueMany([{ eventType: 'a', payload: {} }], { tx: client });
    await client.query('ROLLBACK');
    expect(await stored()).toBe(0);
    expect(await database.query('SELECT FROM quotes')).toHaveLength(0);
    expect(heard).toEqual([]);
  });

  it('rolled back to a savepoint, what was enqueued since is gone, and the rest stays', async () => {
    await client.query('BEGIN');
    await app.outbox.enqueue('a', { n: 'kept' }, {}, { tx: client });
    await client.query('SAVEPOINT sub');
    await app.outbox.enqueue('a', { n: 'gone' }, {}, { tx: client });
    await client.query('ROLLBACK TO SAVEPOINT sub');
    await client.query('COMMIT');
    const rows = await database.query('SELECT payload FROM outbox_events');
    expect(rows).toEqual([{ payload: { n: 'kept' } }]);
  });

  it('stores what was meant, in the types of the table', async () => {
    const scheduledAt = new Date('2031-02-03T04:05:06.789Z');
    await client.query('BEGIN');
    await app.outbox.enqueueMany(
      [
        { eventType: 'a', payload: { list: [] }, metadata: { m: [1] }, scheduledAt, id: ID },
        { eventType: 'b', payload: { text: '10.5' }, delayMs: 60_000 },
        { eventType: 'c', payload: {}, metadata: undefined, id: undefined, delayMs: undefined },
      ],
      { tx: client },
    );
    await client.query('COMMIT');
    const rows = await database.query(
      `SELECT event_type, payload, metadata, jsonb_typeof(payload) AS kind, status, retry_count,
              scheduled_at > now() + interval '59 seconds' AS later
       FROM outbox_events ORDER BY event_type`,
    );
    expect(rows).toEqual([
      {
        event_type: 'a',
        payload: { list: [] },
        metadata: { m: [1] },
        kind: 'object',
        status: 'PENDING',
        retry_count: 0,
        later: true,
      },
      expect.objectContaining({ payload: { text: '10.5' }, metadata: {}, later: true }),
      expect.objectContaining({ payload: {}, metadata: {}, later: false }),
    ]);
    expect((await app.event(ID)).scheduledAt).toEqual(scheduledAt);
  });

  it('that parses json and arrays in its own way is understood all the same', async () => {
    const peculiar = new pg.Client({
      connectionString: database.connectionString,
      types: { getTypeParser: () => (text: string) => text },
    });
    await peculiar.connect();
    try {
      await peculiar.query('BEGIN');
      const first = await app.outbox.enqueue('a', {}, {}, { tx: peculiar, id: ID });
      const second = await app.outbox.enqueue('a', {}, {}, { tx: peculiar, id: ID });
      await peculiar.query('COMMIT');
      expect(first).toEqual({ id: ID, stored: true });
      expect(second).toEqual({ id: ID, stored: true, duplicate: true });
    } finally {
      await peculiar.end();
    }
  });

  it('is still usable after the same id came a second time, and after wrong input', async () => {
    await client.query('BEGIN');
    await app.outbox.enqueue('a', {}, {}, { tx: client, id: ID });
    expect(await app.outbox.enqueue('a', {}, {}, { tx: client, id: ID })).toEqual({
      id: ID,
      stored: true,
      duplicate: true,
    });
    for (const payload of [
      { s: 'a\0b' },
      { deep: [{ s: '\ud83d' }] },
      { 'key \0': 1 },
      { n: Number.NaN },
      [1, 2],
    ])
      await expect(app.outbox.enqueue('a', payload as never, {}, { tx: client })).rejects.toThrow(
        OutboxError,
      );
    await expect(app.outbox.enqueue('error', {}, {}, { tx: client })).rejects.toThrow(OutboxError);
    await client.query('INSERT INTO quotes VALUES (1)');
    await client.query('COMMIT');
    expect(await stored()).toBe(1);
  });

  it('wrong input is refused before any SQL is sent', async () => {
    const statements: unknown[] = [];
    const recording = {
      query: (text: string, values: unknown[]) => {
        statements.push(text);
        return client.query(text, values);
      },
    };
    await client.query('BEGIN');
    await expect(app.outbox.enqueue('a', { s: '\0' }, {}, { tx: recording })).rejects.toThrow(
      'payload.s contains NUL',
    );
    await expect(
      app.outbox.enqueueMany(
        [
          { eventType: 'a', payload: {} },
          { eventType: '', payload: {} },
        ],
        { tx: recording },
      ),
    ).rejects.toThrow(/^events\[1\]\.eventType must not be empty/);
    expect(statements).toEqual([]);
  });

  it('in a transaction that has failed already, the failure is thrown and nothing is emitted', async () => {
    await client.query('BEGIN');
    await expect(client.query('SELECT 1/0')).rejects.toThrow('division by zero');
    await expect(app.outbox.enqueue('a', {}, {}, { tx: client })).rejects.toMatchObject({
      code: '25P02',
    });
    await client.query('ROLLBACK');
    expect(await stored()).toBe(0);
    expect(heard).toEqual([]);
  });

  it('whose connection is cut: the failure is thrown, nothing is emitted, no other connection is used', async () => {
    const doomed = new pg.Client({ connectionString: database.connectionString });
    doomed.on('error', () => {});
    await doomed.connect();
    await doomed.query('BEGIN');
    const [{ pid } = { pid: 0 }] = (await doomed.query('SELECT pg_backend_pid() AS pid')).rows;
    await database.query('SELECT pg_terminate_backend($1, 5000)', [pid]);
    await expect(app.outbox.enqueue('a', {}, {}, { tx: doomed })).rejects.toThrow();
    await doomed.end().catch(() => {});
    expect(await stored()).toBe(0);
    expect(heard).toEqual([]);
    expect(app.log.messages('error')).toEqual([]);
  });

  it('is refused if it is null: a slip that would take the event out of the transaction', async () => {
    const enqueue = app.outbox.enqueue('a', {}, {}, { tx: null as unknown as PgTransaction });
    await expect(enqueue).rejects.toThrow('tx is null: pass the open transaction');
    expect(await stored()).toBe(0);
  });

  describe('is refused, with what to pass instead, if it is', () => {
    it.each<[string, () => unknown, string]>([
      [
        'a pool',
        () => database.pool,
        'tx is a pool, whose every query may take another connection',
      ],
      ['a client on which nothing was begun', () => client, 'tx has no open transaction'],
      ['a string', () => 'tx', 'not an open transaction of a tool this library knows'],
      ['an empty object', () => ({}), 'not an open transaction of a tool this library knows'],
      ['a function', () => () => {}, 'not an open transaction of a tool this library knows'],
      [
        'a client that was never connected',
        () => new pg.Client({ connectionString: database.connectionString }),
        'tx has no open transaction',
      ],
    ])('%s', async (_, tx, message) => {
      const enqueue = app.outbox.enqueue('a', {}, {}, { tx: tx() as PgTransaction });
      await expect(enqueue).rejects.toThrow(message);
      await expect(enqueue).rejects.toThrow(WHAT_TO_PASS);
      await expect(enqueue).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
      expect(await stored()).toBe(0);
      expect(heard).toEqual([]);
    });

    it.each(['COMMIT', 'ROLLBACK'])('a client whose transaction has ended with %s', async (end) => {
      await client.query('BEGIN');
      await client.query(end);
      await expect(app.outbox.enqueue('a', {}, {}, { tx: client })).rejects.toThrow(
        'tx has no open transaction (none was begun, or it has ended)',
      );
      expect(await stored()).toBe(0);
    });

    it('undefined: a slip that would take the event out of the transaction', async () => {
      await expect(app.outbox.enqueue('a', {}, {}, { tx: undefined })).rejects.toThrow(
        'tx is undefined: pass the open transaction, or leave tx out',
      );
      await expect(
        app.outbox.enqueueMany([{ eventType: 'a', payload: {} }], { tx: undefined }),
      ).rejects.toThrow('tx is undefined');
      expect(await stored()).toBe(0);
    });

    it.each(['trx', 'transaction', 'client', 'TX', 'delay', 'scheduleAt'])(
      'given under another name: %s',
      async (name) => {
        await client.query('BEGIN');
        const options = { [name]: client } as object;
        await expect(app.outbox.enqueue('a', {}, {}, options)).rejects.toThrow(
          `unknown option ${name}`,
        );
        await expect(
          app.outbox.enqueueMany([{ eventType: 'a', payload: {} }], options),
        ).rejects.toThrow(`unknown option ${name}`);
        expect(await stored()).toBe(0);
      },
    );

    it('given with one of many events: all of them are in one transaction, or none is', async () => {
      await client.query('BEGIN');
      const items = [{ eventType: 'a', payload: {}, tx: client }];
      await expect(app.outbox.enqueueMany(items as never)).rejects.toThrow(
        'unknown option events[0].tx',
      );
    });
  });

  describe('of an older pg, which cannot tell whether a transaction is open', () => {
    const older = (): PgTransaction => ({ query: (text, values) => client.query(text, values) });

    it('works inside one', async () => {
      await client.query('BEGIN');
      await app.outbox.enqueue('a', {}, {}, { tx: older() });
      expect(await stored()).toBe(0);
      await client.query('COMMIT');
      expect(await stored()).toBe(1);
    });

    it('is refused outside', async () => {
      await expect(app.outbox.enqueue('a', {}, {}, { tx: older() })).rejects.toThrow(
        'tx has no open transaction',
      );
      expect(await stored()).toBe(0);
    });

    it('says what failed in one that has failed', async () => {
      await client.query('BEGIN');
      await expect(client.query('SELECT 1/0')).rejects.toThrow();
      await expect(app.outbox.enqueue('a', {}, {}, { tx: older() })).rejects.toMatchObject({
        code: '25P02',
      });
    });

    it('leaves the savepoints of the caller alone', async () => {
      await client.query('BEGIN');
      await client.query('SAVEPOINT outbox_probe');
      await client.query('INSERT INTO quotes VALUES (1)');
      await app.outbox.enqueue('a', {}, {}, { tx: older() });
      await client.query('ROLLBACK TO SAVEPOINT outbox_probe');
      await client.query('COMMIT');
      expect(await database.query('SELECT FROM quotes')).toHaveLength(0);
      expect(await stored()).toBe(0);
    });
  });

  it('something with a query method that is no pg client is refused before anything is written', async () => {
    // What an ORM's query method answers: the rows themselves.
    const manager = {
      query: async (text: string, values: unknown[]) => (await client.query(text, values)).rows,
    };
    await client.query('BEGIN');
    await expect(
      app.outbox.enqueue('a', {}, {}, { tx: manager as unknown as PgTransaction }),
    ).rejects.toThrow(`tx is not a pg client: ${WHAT_TO_PASS}`);
    await client.query('COMMIT');
    expect(await stored()).toBe(0);
  });

  it('an event of a transaction that stays open longest is not passed over', async () => {
    const early = await database.pool.connect();
    try {
      await early.query('BEGIN');
      const first = await app.outbox.enqueue('a', { n: 'first' }, {}, { tx: early });
      await client.query('BEGIN');
      const second = await app.outbox.enqueue('a', { n: 'second' }, {}, { tx: client });
      await client.query('COMMIT');
      expect(await app.outbox.processPending()).toBe(1);
      expect((await app.event(second.id)).status).toBe('COMPLETED');
      // A rolled-back one in between stalls nothing.
      await client.query('BEGIN');
      await app.outbox.enqueue('a', { n: 'rolled back' }, {}, { tx: client });
      await client.query('ROLLBACK');
      await early.query('COMMIT');
      expect(await app.outbox.processPending()).toBe(1);
      expect((await app.event(first.id)).status).toBe('COMPLETED');
      expect(heard).toHaveLength(2);
    } finally {
      early.release();
    }
  });
});

it('a transaction and the in-memory store do not go together', async () => {
  await using app = await startApp({ outbox: { store: new InMemoryOutboxStore() } });
  const client = { query: async () => ({ rows: [] }), getTransactionStatus: () => 'T' };
  await expect(app.outbox.enqueue('a', {}, {}, { tx: client })).rejects.toThrow(
    'tx cannot be used with the in-memory store',
  );
});
