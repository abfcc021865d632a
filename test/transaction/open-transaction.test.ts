import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { OnEvent } from '@nestjs/event-emitter';
import pg from 'pg';
import postgres from 'postgres';
import { migrateOutbox, type OutboxTransaction } from '../../src/index.js';
import { InMemoryOutboxStore } from '../../src/testing.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { startApp, type OutboxApp } from '../support/outbox-app.js';
import { until } from '../support/until.js';
import { untilAwake } from './suite.js';

describe('tx', () => {
  let database: TestDatabase;
  let app: OutboxApp;
  let client: pg.PoolClient;
  const heard: Record<string, unknown>[] = [];

  class Listener {
    @OnEvent('a')
    handle(event: Record<string, unknown>): void {
      heard.push(event);
    }
  }

  beforeAll(async () => {
    database = await createDatabase();
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
    (await database.query('SELECT FROM outbox_events')).length;
  const enqueue = (tx: unknown) => app.outbox.enqueue('a', {}, {}, { tx: tx as OutboxTransaction });

  it.each<[string, unknown, string]>([
    ['a string', 'tx', 'tx is "tx", not an open transaction of a tool this library knows'],
    ['a number', 42, 'tx is 42, not'],
    ['an empty object', {}, 'tx is an object, not'],
    ['an object without a prototype', Object.create(null), 'tx is an object, not'],
    ['a function', () => {}, 'tx is a function, not'],
    ['a map', new Map(), 'tx is an object of class Map, not'],
    ['null', null, 'tx is null: pass the open transaction'],
    ['undefined', undefined, 'tx is undefined: pass the open transaction'],
  ])('that is %s is refused, and the message lists what may be passed', async (_, tx, message) => {
    const refused = enqueue(tx);
    await expect(refused).rejects.toThrow(message);
    await expect(refused).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    if (tx !== null && tx !== undefined)
      await expect(refused).rejects.toThrow(
        'pass the pg client on which you ran BEGIN, or the transaction object of postgres.js, Knex, Kysely, ' +
          'Drizzle, Prisma, TypeORM or MikroORM',
      );
    expect(await stored()).toBe(0);
    expect(heard).toEqual([]);
  });

  it('costs one statement if something was written before, two if not, none outside a transaction', async () => {
    const statements = recorded(client);
    await client.query('BEGIN');
    await client.query('INSERT INTO quotes VALUES (1)');
    statements.splice(0);
    await enqueue(client);
    expect(statements).toHaveLength(1);
    await client.query('COMMIT');

    statements.splice(0);
    await expect(enqueue(client)).rejects.toThrow('tx has no open transaction');
    expect(statements).toHaveLength(0);

    await client.query('BEGIN');
    statements.splice(0);
    await enqueue(client);
    expect(statements).toHaveLength(2);
    await enqueue(client);
    expect(statements).toHaveLength(3);
    await client.query('COMMIT');
    expect(await stored()).toBe(3);
  });

  it('whose COMMIT is on its way already is refused: it would be written beside the transaction', async () => {
    await client.query('BEGIN');
    await client.query('INSERT INTO quotes VALUES (1)');
    // A forgotten await: the statement of the enqueue is sent after the COMMIT.
    const late = enqueue(client).then(
      () => 'stored',
      (error: Error) => error.message,
    );
    await client.query('COMMIT');
    expect(await late).toContain('tx has no open transaction (none was begun, or it has ended)');
    expect(await stored()).toBe(0);
  });

  it('keeps no setting for the next one on the same connection', async () => {
    await client.query('BEGIN');
    await enqueue(client);
    await client.query('COMMIT');
    const { rows } = await client.query(
      `SELECT current_setting('outbox_relay.transaction', true) AS mark`,
    );
    expect(rows[0].mark ?? '').toBe('');
  });

  it('may be read-only, which the failure says', async () => {
    await client.query('BEGIN READ ONLY');
    await expect(enqueue(client)).rejects.toMatchObject({ code: '25006' });
  });

  it('may be serializable', async () => {
    await client.query('BEGIN ISOLATION LEVEL SERIALIZABLE');
    await enqueue(client);
    await client.query('COMMIT');
    expect(await stored()).toBe(1);
  });

  it('something with a query method that is no pg client is refused before anything is written', async () => {
    // What an ORM's query method answers: the rows themselves.
    const manager = {
      query: async (text: string, values: unknown[]) => (await client.query(text, values)).rows,
    };
    await client.query('BEGIN');
    await client.query('INSERT INTO quotes VALUES (1)');
    await expect(enqueue(manager)).rejects.toThrow(
      'tx is not a pg client: pass the pg client on which you ran BEGIN',
    );
    await client.query('COMMIT');
    expect(await stored()).toBe(0);
  });

  it('of a client that parses and names columns in its own way is understood all the same', async () => {
    const peculiar = postgres(database.connectionString, {
      transform: { column: { from: (name: string) => `${name.toUpperCase()}_` } },
      types: { json: { to: 114, from: [114], serialize: String, parse: String } },
      max: 1,
    });
    const id = '11111111-1111-4111-8111-111111111111';
    await peculiar.begin(async (tx) => {
      expect(await app.outbox.enqueue('a', {}, {}, { tx, id })).toEqual({ id, stored: true });
      expect(await app.outbox.enqueue('a', {}, {}, { tx, id })).toMatchObject({ duplicate: true });
    });
    await peculiar.end();
    expect(await stored()).toBe(1);
  });

  it('whose end can be seen wakes every relay that an event in it is for, once', async () => {
    await migrateOutbox({ database: database.pool, table: 'other_events' });
    const start = (table: string) =>
      startApp({ outbox: { pool: database.pool, table, relay: {} }, providers: [Listener] });
    await using one = await start('outbox_events');
    await using other = await start('other_events');
    await untilAwake(database, one, heard);
    await untilAwake(database, other, heard);
    await client.query('BEGIN');
    const { id } = await one.outbox.enqueue('a', {}, {}, { tx: client });
    const { id: second } = await other.outbox.enqueue('a', {}, {}, { tx: client });
    for (let more = 0; more < 20; more++) await one.outbox.enqueue('a', {}, {}, { tx: client });
    expect(client.listenerCount('drain')).toBe(1);
    await client.query('COMMIT');
    await one.eventIn('COMPLETED', id);
    await other.eventIn('COMPLETED', second);
    expect(client.listenerCount('drain')).toBe(0);
  });

  it('that has ended by the time its end is watched for wakes the relay all the same', async () => {
    await using relaying = await startApp({
      outbox: { pool: database.pool, relay: {} },
      providers: [Listener],
    });
    await untilAwake(database, relaying, heard);
    await client.query('BEGIN');
    await client.query('INSERT INTO quotes VALUES (1)');
    const slow = new Proxy(client, {
      get(target, key) {
        if (key !== 'query') return bound(target, key);
        return async (text: string, values: unknown[]) => {
          const answer = await target.query(text, values);
          await target.query('COMMIT');
          return answer;
        };
      },
    });
    const { id } = await relaying.outbox.enqueue('a', {}, {}, { tx: slow });
    await relaying.eventIn('COMPLETED', id);
    expect(client.listenerCount('drain')).toBe(0);
  });

  it('for later is heard of when it is due, although no tick comes', async () => {
    await using relaying = await startApp({
      outbox: { pool: database.pool, relay: {} },
      providers: [Listener],
    });
    await untilAwake(database, relaying, heard);
    await client.query('BEGIN');
    await relaying.outbox.enqueue('a', {}, {}, { tx: client, delayMs: 400 });
    await client.query('COMMIT');
    await until(() => heard.length === 1, { what: 'it is heard', timeoutMs: 5_000 });
  });
});

it('a transaction and the in-memory store do not go together', async () => {
  await using app = await startApp({ outbox: { store: new InMemoryOutboxStore() } });
  const tx = {
    query: async () => ({ rows: [{ one: 1 }] }),
    getTransactionStatus: () => 'T',
    on: () => {},
    off: () => {},
  };
  await expect(app.outbox.enqueue('a', {}, {}, { tx })).rejects.toThrow(
    'tx cannot be used with the in-memory store',
  );
});

function bound(target: object, key: string | symbol): unknown {
  const value = Reflect.get(target, key, target) as unknown;
  return typeof value === 'function' ? (value.bind(target) as unknown) : value;
}

/** The statements that the client is given from now on. */
function recorded(client: pg.PoolClient): string[] {
  const statements: string[] = [];
  const query = client.query.bind(client) as (...args: unknown[]) => unknown;
  client.query = ((text: string, ...rest: unknown[]) => {
    statements.push(text);
    return query(text, ...rest);
  }) as typeof client.query;
  return statements;
}
