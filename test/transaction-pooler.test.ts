import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { OnEvent } from '@nestjs/event-emitter';
import pg from 'pg';
import {
  BootstrapPublisher,
  OutboxInbox,
  type Delivered,
  type OutboxModuleOptions,
} from '../src/index.js';
import { createDatabase, type TestDatabase } from './support/database.js';
import { startApp, type OutboxApp } from './support/outbox-app.js';
import { describeWithPooler, startPooler, type Pooler } from './support/pgbouncer.js';
import { until } from './support/until.js';

// Supabase's; known by it, for a pooler does not say what it is.
const PORT = 6543;

/** Fails as often as it is told, then does its work. */
class Notifier {
  readonly attempts: number[] = [];
  failures = 0;

  @OnEvent('quote.created')
  async notify(event: Delivered): Promise<void> {
    this.attempts.push(event._outbox.attempt);
    if (this.failures-- > 0) throw new Error('no signal');
  }
}

describeWithPooler('behind a pooler in transaction mode', () => {
  let database: TestDatabase;
  let pooler: Pooler;
  beforeAll(async () => {
    database = await createDatabase();
    await database.query('CREATE TABLE quotes (id integer PRIMARY KEY)');
    // Two server sessions for everything: what one client leaves in a session, another one meets.
    pooler = await startPooler(database.connectionString, {
      sessions: 2,
      port: PORT,
      scope: 'file',
    });
    await (await start({ migrate: true })).close();
  });
  beforeEach(async () => {
    await database.query('TRUNCATE outbox_events, quotes');
  });
  afterAll(async () => {
    await pooler[Symbol.asyncDispose]();
    await database.drop();
  });

  const start = (options: Partial<OutboxModuleOptions> = {}): Promise<OutboxApp> =>
    startApp({
      outbox: {
        ...(options.pool === undefined && { connectionString: pooler.connectionString }),
        retry: { maxRetries: 2, backoff: () => 1 },
        ...options,
      },
      providers: [Notifier],
    });

  it('the schema is made, and a relay delivers, retries, sets aside and redrives', async () => {
    await using app = await start({ relay: {} });
    const notifier = app.module.get(Notifier);
    notifier.failures = 1;
    const { id } = await app.outbox.enqueue('quote.created', { n: 1 });
    await app.eventIn('COMPLETED', id);
    expect(notifier.attempts).toEqual([1, 2]);

    notifier.failures = 2;
    const { id: poor } = await app.outbox.enqueue('quote.created', { n: 2 });
    expect(await app.eventIn('FAILED', poor)).toMatchObject({ retryCount: 2 });
    expect(await app.deadLetters.redrive(poor)).toBe(1);
    await app.eventIn('COMPLETED', poor);
  });

  it('it is said once, with what does not work there', async () => {
    await using app = await start({ relay: {} });
    const said = app.log.messages('warn').filter((line) => line.includes('pooler'));
    expect(said).toEqual([expect.stringMatching(/port 6543.*LISTEN does not work.*within 15 s/)]);
  });

  it('nothing of a session is left for the next client: no LISTEN, no lock, no setting', async () => {
    await using app = await start({ relay: { boss: undefined as never } });
    await app.eventIn('COMPLETED', (await app.outbox.enqueue('quote.created', {})).id);
    // By way of the pooler, so that it is the sessions behind it that answer.
    const client = new pg.Client({ connectionString: pooler.connectionString });
    await client.connect();
    try {
      for (let times = 0; times < 20; times++) {
        const { rows } = await client.query(
          // The pooler itself sets application_name, each time to the client's.
          `SELECT name FROM pg_settings
           WHERE setting <> reset_val AND source = 'session' AND name <> 'application_name'
           UNION ALL SELECT * FROM pg_listening_channels()`,
        );
        expect(rows).toEqual([]);
      }
    } finally {
      await client.end();
    }
    // Those of a transaction, such as pg-boss takes, end with it.
    await until(
      async () =>
        (
          await database.query(
            `SELECT FROM pg_locks WHERE locktype = 'advisory' AND database =
               (SELECT oid FROM pg_database WHERE datname = current_database())`,
          )
        ).length === 0,
      { what: 'no lock is held' },
    );
  });

  it('an event in the caller’s transaction comes and goes with it, over a pool of the application’s', async () => {
    const pool = new pg.Pool({ connectionString: pooler.connectionString, max: 5 });
    try {
      await using app = await start({ pool, relay: {} });
      const client = await pool.connect();
      try {
        for (const [n, end] of [
          [1, 'ROLLBACK'],
          [2, 'COMMIT'],
        ] as const) {
          await client.query('BEGIN');
          await client.query('INSERT INTO quotes VALUES ($1)', [n]);
          await app.outbox.enqueue('quote.created', { n }, {}, { tx: client });
          await client.query(end);
        }
      } finally {
        client.release();
      }
      await until(() => app.module.get(Notifier).attempts.length === 1, {
        what: 'it is delivered',
      });
      const rows = await database.query('SELECT payload FROM outbox_events');
      expect(rows).toEqual([{ payload: { n: 2 } }]);
    } finally {
      await pool.end();
    }
  });

  it('the inbox does the work once, and a gate is stamped once', async () => {
    await using app = await start();
    const inbox = app.module.get(OutboxInbox);
    const { id } = await app.outbox.enqueue('quote.created', {});
    const work = async (client: pg.PoolClient): Promise<void> => {
      await client.query('INSERT INTO quotes VALUES (1)');
    };
    const done = await Promise.all([1, 2, 3].map(() => inbox.once(id, 'ledger', work)));
    expect(done.filter(Boolean)).toHaveLength(1);

    const gates = app.module.get(BootstrapPublisher);
    const run = () =>
      gates.run({
        key: 'quotes',
        eventType: 'quote.created',
        load: async () => [{ n: 1 }],
        payload: (rows) => ({ rows }),
        whenEmpty: 'stamp',
      });
    const runs = [(await run()).outcome, (await run()).outcome];
    expect(runs).toEqual(['stamped', 'already-stamped']);
  });

  it('pg-boss ticks: what SQL has enqueued in silence is delivered within 15 seconds', async () => {
    await using app = await start({ relay: { boss: undefined as never } });
    // The ticks at the start are over when the next one waits for its time.
    await until(
      async () =>
        (
          await database.query(
            `SELECT FROM pgboss.job WHERE name = 'process-outbox' AND state = 'created' AND start_after > now()`,
          )
        ).length > 0,
      { what: 'the next tick is to come' },
    );
    await until(async () => (await app.outbox.stats()).due === 0, { what: 'nothing is due' });
    const [row] = await database.query<{ id: string }>(
      `INSERT INTO outbox_events (event_type, payload) VALUES ('quote.created', '{}') RETURNING id`,
    );
    await until(async () => (await app.event(row!.id)).status === 'COMPLETED', {
      what: 'the tick has found it',
      timeoutMs: 20_000,
    });
  }, 40_000);

  it('a process behind it wakes one that listens on a direct connection', async () => {
    await using relaying = await startApp({
      outbox: { connectionString: database.connectionString, relay: {} },
      providers: [Notifier],
    });
    await using writing = await start();
    await until(
      async () => {
        const { id } = await writing.outbox.enqueue('quote.created', {});
        return until(async () => (await relaying.event(id)).status === 'COMPLETED', {
          what: 'it is delivered',
          timeoutMs: 2_000,
        });
      },
      { what: 'a wake has arrived' },
    );
  });

  it('two relays share the work, and each event is delivered once', async () => {
    await using one = await start();
    await using two = await start();
    const total = 300;
    await one.outbox.enqueueMany(
      Array.from({ length: total }, (_, n) => ({ eventType: 'quote.created', payload: { n } })),
    );
    const drain = async ({ outbox }: OutboxApp): Promise<void> => {
      while ((await outbox.processPending(20)) > 0);
    };
    await Promise.all([drain(one), drain(two)]);
    const shares = [one, two].map((app) => app.module.get(Notifier).attempts.length);
    expect(shares.reduce((a, b) => a + b)).toBe(total);
    expect(Math.min(...shares)).toBeGreaterThan(0);
    expect(await one.outbox.stats()).toMatchObject({ due: 0, processing: 0, failed: 0 });
  });
});
