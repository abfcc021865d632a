import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import type pg from 'pg';
import { migrateOutbox } from '../../src/index.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { startApp, type OutboxApp } from '../support/outbox-app.js';

const EVENTS = 250;

@Injectable()
class Listener {
  @OnEvent('counted')
  hear(): void {}
}

/**
 * Statements that PostgreSQL was sent, whoever sent them: counted on the connections themselves. Beside them, a process
 * that does not relay wakes those that do, at most every 3 ms.
 */
function countStatements(pool: pg.Pool): () => string[] {
  const sent: string[] = [];
  pool.on('connect', (client) => {
    const query = client.query.bind(client) as (...args: unknown[]) => unknown;
    const counting = (...args: unknown[]): unknown => {
      const [first] = args as [string | { text: string }];
      sent.push(typeof first === 'string' ? first : first.text);
      return query(...args);
    };
    Object.assign(client, { query: counting });
  });
  return () => sent.splice(0).filter((text) => !text.includes('pg_notify'));
}

describe('statements', () => {
  let database: TestDatabase;
  let app: OutboxApp;
  let sent: () => string[];

  beforeEach(async () => {
    database = await createDatabase(18);
    sent = countStatements(database.pool);
    await migrateOutbox({ database: database.pool });
    await database.query('CREATE TABLE quotes (id integer)');
    app = await startApp({ outbox: { pool: database.pool }, providers: [Listener] });
    await app.outbox.stats();
    sent();
  });
  afterEach(async () => {
    await app.close();
    await database.drop();
  });

  const items = Array.from({ length: EVENTS }, () => ({ eventType: 'counted', payload: {} }));

  it('an enqueue is one, and so is enqueueMany, however many events there are', async () => {
    await app.outbox.enqueue('counted', {});
    expect(sent()).toHaveLength(1);
    await app.outbox.enqueueMany(items);
    expect(sent()).toHaveLength(1);
  });

  it('an enqueue in a transaction is one after the business data, two before', async () => {
    const client = await database.pool.connect();
    try {
      await client.query('BEGIN');
      await client.query('INSERT INTO quotes VALUES (1)');
      sent();
      await app.outbox.enqueue('counted', {}, {}, { tx: client });
      expect(sent()).toHaveLength(1);
      await client.query('COMMIT');

      await client.query('BEGIN');
      sent();
      await app.outbox.enqueue('counted', {}, {}, { tx: client });
      expect(sent()).toHaveLength(2);
      await client.query('COMMIT');
    } finally {
      client.release();
    }
  });

  it('a pass is two: the claim, and one for all that it settles', async () => {
    await app.outbox.enqueueMany(items);
    sent();
    expect(await app.outbox.processPending(EVENTS)).toBe(EVENTS);
    expect(sent()).toHaveLength(2);
    expect(await app.outbox.processPending(EVENTS)).toBe(0);
    expect(sent()).toHaveLength(1);
  });

  it('a reap is two a batch, and one more to see that nothing is left', async () => {
    await app.outbox.enqueueMany(items);
    await database.query(
      `UPDATE outbox_events SET status = 'PROCESSING', lease_token = gen_random_uuid(), leased_until = now()`,
    );
    sent();
    expect(await app.outbox.reap()).toBe(EVENTS);
    expect(sent()).toHaveLength(2 * Math.ceil(EVENTS / 100) + 1);
  });

  it('pruning is one for each thousand rows, and one for each kind of row', async () => {
    await database.query(
      `INSERT INTO outbox_events (event_type, payload, status, processed_at)
       SELECT 'counted', '{}', 'COMPLETED', now() - interval '1 year' FROM generate_series(1, 2500)`,
    );
    sent();
    expect(await app.outbox.deleteProcessed()).toEqual({ completed: 2_500, failed: 0, inbox: 0 });
    expect(sent()).toHaveLength(3 + 1 + 1);
  });

  it('stats are two: the events, and the gates', async () => {
    await app.outbox.stats();
    expect(sent()).toHaveLength(2);
  });
});

describe('a relay that works off a backlog', () => {
  it('sends two statements a batch at the most, and as a rule one: what is settled goes with the next claim', async () => {
    await using stack = new AsyncDisposableStack();
    const database = await createDatabase(18);
    stack.defer(() => database.drop());
    const sent = countStatements(database.pool);
    await migrateOutbox({ database: database.pool });
    const app = await startApp({
      outbox: { pool: database.pool, relay: { batchSize: 50 } },
      providers: [Listener],
    });
    stack.use(app);
    await app.outbox.stats();
    sent();
    const stored = await app.outbox.enqueueMany(
      Array.from({ length: 1_000 }, () => ({ eventType: 'counted', payload: {} })),
    );
    await app.eventIn('COMPLETED', stored.at(-1)!.id);
    const moves = sent().filter((text) => text.includes('settle_and_claim'));
    // Twenty batches. What finishes while two statements are under way goes with the next, or with one of its own.
    expect(moves.length).toBeGreaterThanOrEqual(20);
    expect(moves.length).toBeLessThan(40);
  });
});
