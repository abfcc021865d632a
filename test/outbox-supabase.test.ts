import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { OnEvent } from '@nestjs/event-emitter';
import { createClient } from '@supabase/supabase-js';
import { migrate } from '../src/schema/migrate.js';
import { sqlNames, type SqlNames } from '../src/store/postgres/sql-names.js';
import type { Delivered, OutboxModuleOptions, RelayOptions } from '../src/index.js';
import { startApp, type OutboxApp } from './support/outbox-app.js';
import { describeWithPooler, startPooler } from './support/pgbouncer.js';
import { describeOnSupabase, type Project } from './support/supabase/projects.js';
import { until } from './support/until.js';

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

// The next tick is 15 seconds away: whatever happens sooner, a wake has done.
const BEFORE_THE_TICK = { timeoutMs: 10_000 };

describeOnSupabase('an application on Supabase', (kind) => {
  let project: Project;
  let names: SqlNames;
  beforeAll(async () => {
    project = await kind.open();
    names = sqlNames('public', kind.table);
    await migrate(project.pool, names);
  });
  beforeEach(async () => {
    await project.query(`TRUNCATE ${names.events}`);
  });
  afterAll(async () => {
    await project[Symbol.asyncDispose]();
  });

  const start = (options: OutboxModuleOptions = {}): Promise<OutboxApp> =>
    startApp({
      outbox: {
        supabase: { url: project.url, serviceRoleKey: project.keys.secret },
        table: kind.table,
        retry: { maxRetries: 2, backoff: () => 1 },
        ...options,
      },
      providers: [Notifier],
    });
  /** Ticks on a pg-boss of its own. */
  const relay = (options: RelayOptions = {}): RelayOptions => ({
    boss: undefined as never,
    connectionString: project.databaseUrl,
    ...options,
  });

  it('delivers, retries, sets aside and redrives, with pg-boss on the relay’s own connection', async () => {
    await using app = await start({ relay: relay() });
    const notifier = app.module.get(Notifier);
    notifier.failures = 1;
    const first = await app.outbox.enqueue('quote.created', { n: 1 });
    expect(first).toEqual({ id: expect.any(String), stored: true });
    await app.eventIn('COMPLETED', first.id);
    expect(notifier.attempts).toEqual([1, 2]);

    notifier.failures = 2;
    const { id } = await app.outbox.enqueue('quote.created', { n: 2 });
    expect(await app.eventIn('FAILED', id)).toMatchObject({
      retryCount: 2,
      lastError: expect.stringContaining('no signal'),
    });
    expect((await app.deadLetters.list()).items).toMatchObject([{ id, payload: { n: 2 } }]);
    expect(await app.deadLetters.redrive({ ids: [id] })).toBe(1);
    expect(await app.eventIn('COMPLETED', id)).toMatchObject({
      previousLives: [{ retryCount: 2 }],
    });
    const queue =
      "SELECT count(*)::int AS queues FROM pgboss.queue WHERE name LIKE 'process-outbox%'";
    await until(async () => (await project.query<{ queues: number }>(queue))[0]!.queues > 0, {
      what: 'pg-boss has the queue',
    });
    expect(app.log.messages('error', 'fatal')).toEqual([
      expect.stringContaining('is a dead letter after 2 failed attempt(s)'),
    ]);
  });

  it('a process with nothing but the Data API wakes one that relays', async () => {
    await using relaying = await start({ relay: relay() });
    await using api = await start({ relay: false });
    const listening = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN "public.%'`;
    await until(async () => (await project.query(listening)).length > 0, { what: 'it listens' });
    const { id } = await api.outbox.enqueue('quote.created', { n: 1 });
    await until(async () => (await relaying.event(id)).status === 'COMPLETED', {
      what: 'it is delivered before the tick',
      ...BEFORE_THE_TICK,
    });
  });

  it('what a database function has enqueued is delivered at once after wake()', async () => {
    await using app = await start({ relay: {} });
    const { data } = await createClient(project.url, project.keys.secret).rpc(
      `${names.prefix}_enqueue`,
      { event_type: 'quote.created', payload: { n: 1 } },
    );
    app.outbox.wake();
    await app.eventIn('COMPLETED', data as string);
  });

  it('takes a client of the application’s own', async () => {
    const supabase = createClient(project.url, project.keys.secret, {
      auth: { persistSession: false, autoRefreshToken: false, detectSessionInUrl: false },
    });
    await using app = await start({ supabase });
    const { id } = await app.outbox.enqueue('quote.created', { n: 1 });
    expect(await app.outbox.processPending()).toBe(1);
    expect(await app.event(id)).toMatchObject({ status: 'COMPLETED' });
  });

  describe('an answer that gets lost on its way back', () => {
    let lost: string[] = [];
    /** The project does what it is asked, and the answer to the first call of that function never arrives. */
    const startLosing = (verb: string): Promise<OutboxApp> => {
      lost = [`/rpc/${names.prefix}_${verb}`];
      const losing: typeof fetch = async (input, init) => {
        const answer = await fetch(input, init);
        if (!answer.url.endsWith(lost[0] ?? ' ')) return answer;
        lost = [];
        await answer.arrayBuffer();
        throw new TypeError('fetch failed');
      };
      return start({
        supabase: createClient(project.url, project.keys.secret, { global: { fetch: losing } }),
      });
    };

    it('of an enqueue: it is stored once, and not called a duplicate', async () => {
      await using app = await startLosing('enqueue');
      const enqueued = await app.outbox.enqueue('quote.created', { n: 1 });
      expect(enqueued).toEqual({ id: expect.any(String), stored: true });
      expect(lost).toEqual([]);
      expect(await app.outbox.processPending()).toBe(1);
      expect(app.module.get(Notifier).attempts).toEqual([1]);
    });

    it('of a settlement: the listener is not called again', async () => {
      await using app = await startLosing('settle_and_claim_as_json');
      await app.outbox.enqueue('quote.created', { n: 1 });
      await app.outbox.processPending();
      expect(lost).toEqual([]);
      expect(await app.outbox.stats()).toMatchObject({ due: 0, processing: 0 });
      expect(app.module.get(Notifier).attempts).toEqual([1]);
      expect(app.log.messages('error')).toEqual([]);
    });

    it('of a claim: it is an error, and the reaper gives the event back with an attempt more', async () => {
      await using app = await startLosing('claim_as_json');
      const { id } = await app.outbox.enqueue('quote.created', { n: 1 });
      await expect(app.outbox.processPending()).rejects.toThrow(
        'no answer: TypeError: fetch failed',
      );
      expect(lost).toEqual([]);
      expect(await app.event(id)).toMatchObject({ status: 'PROCESSING' });
      await project.query(`UPDATE ${names.events} SET leased_until = now()`);
      expect(await app.outbox.reap()).toBe(1);
      await until(async () => (await app.outbox.processPending()) === 1, {
        what: 'it is due again',
      });
      expect(await app.event(id)).toMatchObject({ status: 'COMPLETED' });
      expect(app.module.get(Notifier).attempts).toEqual([2]);
    });
  });

  it('refuses tx, with what to do instead, and emits nothing', async () => {
    await using app = await start({});
    const tx = { query: async () => ({ rows: [{ intact: 1 }] }) };
    await expect(
      app.outbox.enqueue('quote.created', { n: 1 }, {}, { tx: tx as never }),
    ).rejects.toThrow(/^tx cannot be used with Supabase/);
    expect(app.module.get(Notifier).attempts).toEqual([]);
    expect(await app.outbox.stats()).toMatchObject({ due: 0 });
  });

  if (!kind.hosted) {
    describeWithPooler('with a pooler in transaction mode for the relay', () => {
      it('delivers what is enqueued over the Data API, ticks, and says that it does not listen', async () => {
        await using pooler = await startPooler(project.databaseUrl, {
          sessions: 2,
          host: '127.0.0.2',
          port: 6543,
          scope: 'test',
        });
        await using app = await start({
          relay: relay({ connectionString: pooler.connectionString }),
        });
        const { id } = await app.outbox.enqueue('quote.created', {});
        await app.eventIn('COMPLETED', id);
        await until(async () => (await project.query(`SELECT FROM pgboss.job`)).length > 0, {
          what: 'pg-boss has a tick',
        });
        const said = app.log.messages('warn').filter((line) => line.includes('pooler'));
        expect(said).toHaveLength(1);
      });
    });
  }

  it('migrates over the relay’s connection if it is told to', async () => {
    await using app = await start({
      migrate: true,
      table: 'outbox_selftest2_events',
      relay: relay(),
    });
    const { id } = await app.outbox.enqueue('quote.created', { n: 1 });
    await app.eventIn('COMPLETED', id);
    expect(app.log.messages('log')).toContainEqual(
      expect.stringMatching(/^migrated "public"."outbox_selftest2_events" to version/),
    );
  });
});
