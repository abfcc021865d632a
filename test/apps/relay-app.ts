/**
 * A Nest application with an outbox, run as a process of its own so that it can be killed, starved and cut off.
 *
 * It is told what to be by the environment variable RELAY_APP (JSON, see `RelayAppSettings`) and what to do by lines
 * of JSON on stdin (see `Command`). It says what happens in lines of JSON on stdout. Its listener does what the
 * event's payload says and notes it in a ledger, on a connection of its own and outside the outbox.
 */
import 'reflect-metadata';
import { Injectable, Logger, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import {
  OutboxModule,
  OutboxService,
  type Delivered,
  type OutboxModuleOptions,
  type PgPool,
  type PgQuery,
  type RelayOptions,
  type TickBoss,
  type TickJob,
} from 'nestjs-outbox-relay';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { PgBoss } from 'pg-boss';

/** Moments at which the app can be told to stand still. */
export type Point =
  /** The claim has been answered, no listener has been called. */
  | 'claimed'
  /** In the listener, after it has noted that it was called. */
  | 'listener'
  /** The listeners have answered, the outcome has not been sent. */
  | 'settling'
  /** The outcome is stored; the relay has not heard so. */
  | 'settled'
  /** Expired events have been taken over and not been judged. */
  | 'reaped';

export interface RelayAppSettings {
  /** Where events rest. */
  readonly database: string;
  /** Where the listener notes what it did. Default: the same database. */
  readonly ledger?: string;
  /** Who it is in the ledger. */
  readonly name?: string;
  readonly table?: string;
  readonly migrate?: boolean;
  readonly relay?: false | Omit<RelayOptions, 'boss'>;
  readonly retry?: { readonly maxRetries?: number; readonly backoffMs?: number };
  /** `app`: the application hands in a pool of its own. Default `own`: the outbox opens one. Points other than `listener` need `app`. */
  readonly pool?: 'own' | 'app';
  /** `app`: the application's own, with pg-boss's default settings. `hand`: a tick comes when stdin says so. Default `own`: the outbox opens one. */
  readonly boss?: 'own' | 'app' | 'hand';
  /** Stand still at these points, each from that pass on (0: the first). */
  readonly hold?: Partial<Record<Point, number>>;
  /** Say nothing about single events: there are many. */
  readonly quiet?: boolean;
}

/** What an event of type `work` asks of the listener. */
export interface Work {
  readonly n: number;
  /** Default `succeed`. */
  readonly act?: 'succeed' | 'fail' | 'exit' | 'hang' | 'sleep' | 'block';
  /** How long to sleep, or to block the event loop, in milliseconds. */
  readonly ms?: number;
}

export type Command =
  | { readonly do: 'go'; readonly point: Point }
  | { readonly do: 'enqueue'; readonly work: readonly Work[]; readonly delayMs?: number }
  /** Enqueues in a transaction that stays open for so long. `unseen`: the outbox is given nothing that tells of its end. */
  | {
      readonly do: 'enqueueInTransaction';
      readonly work: Work;
      readonly commitAfterMs: number;
      readonly unseen: boolean;
    }
  | { readonly do: 'tick' | 'reap' | 'close' };

const settings = JSON.parse(process.env['RELAY_APP'] ?? '{}') as RelayAppSettings;

function say(message: { type: string } & Record<string, unknown>): void {
  console.log(JSON.stringify(message));
}

/** Places where the app stands still until it is told to go on. */
class Points {
  private readonly passes = new Map<Point, number>();
  private readonly held = new Map<Point, (() => void)[]>();
  private readonly released = new Set<Point>();

  async reach(point: Point): Promise<void> {
    const from = settings.hold?.[point];
    if (from === undefined || this.released.has(point)) return;
    const passes = this.passes.get(point) ?? 0;
    this.passes.set(point, passes + 1);
    if (passes < from) return;
    say({ type: 'at', point });
    await new Promise<void>((resolve) => {
      this.held.set(point, [...(this.held.get(point) ?? []), resolve]);
    });
  }

  /** Lets everybody go on who stands there, and whoever comes later. */
  release(point: Point): void {
    this.released.add(point);
    for (const goOn of this.held.get(point) ?? []) goOn();
  }
}

const points = new Points();

const ledger = new pg.Pool({
  connectionString: settings.ledger ?? settings.database,
  application_name: 'relay-app',
});
ledger.on('error', () => {});

async function note(point: 'started' | 'finished', event: Delivered): Promise<void> {
  await ledger.query(
    'INSERT INTO ledger (event, n, attempt, app, point) VALUES ($1, $2, $3, $4, $5)',
    [event._outbox.id, event['n'], event._outbox.attempt, settings.name ?? 'app', point],
  );
}

@Injectable()
class Worker {
  @OnEvent('work')
  async work(event: Delivered): Promise<void> {
    const { n, act = 'succeed', ms = 0 } = event as Delivered & Work;
    if (event['_outboxFailed'] === true) {
      say({ type: 'emitted', n, id: event._outbox.id });
      return;
    }
    await note('started', event);
    if (settings.quiet !== true) say({ type: 'started', n, attempt: event._outbox.attempt });
    await points.reach('listener');
    if (act === 'fail') throw new Error(`told to fail (${n})`);
    if (act === 'exit') process.exit(1);
    if (act === 'hang') await new Promise(() => {});
    if (act === 'sleep') await sleep(ms);
    if (act === 'block') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
    await note('finished', event);
    if (settings.quiet !== true) say({ type: 'finished', n, attempt: event._outbox.attempt });
  }
}

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-/;

/** The application's own pool, which tells what passes through it. */
class WatchedPool implements PgPool {
  constructor(private readonly pool: pg.Pool) {}

  async query(config: PgQuery): Promise<{ rows: unknown[] }> {
    const verb = /"outbox_(claim|settle|settle_and_claim|reap)"\(/.exec(config.text)?.[1] ?? '';
    // The first three name what is to be settled, if anything.
    const settles =
      verb === 'settle' ||
      (verb === 'settle_and_claim' && UUID.test(JSON.stringify(config.values?.slice(0, 3))));
    if (settles) await points.reach('settling');
    const result = await this.pool.query<Record<string, unknown>>(config as pg.QueryConfig);
    if (settles) await points.reach('settled');
    const claims = verb.includes('claim') && result.rows.some((row) => row['lost'] !== 't');
    if (claims) await points.reach('claimed');
    if (verb === 'reap' && result.rows.length > 0) await points.reach('reaped');
    return result;
  }

  async connect(): Promise<pg.PoolClient> {
    return this.pool.connect();
  }
}

/** Ticks when it is told to. */
class HandBoss implements TickBoss {
  private handler: ((jobs: TickJob[]) => Promise<void>) | undefined;

  async work(
    _name: string,
    _options: object,
    handler: (jobs: TickJob[]) => Promise<void>,
  ): Promise<string> {
    this.handler = handler;
    say({ type: 'ticking' });
    return 'by hand';
  }

  async tick(): Promise<void> {
    await this.handler?.([{}]);
  }

  async createQueue(): Promise<void> {}
  async schedule(): Promise<void> {}
  async send(): Promise<null> {
    return null;
  }
  async offWork(): Promise<void> {}
}

const handBoss = new HandBoss();
const closing: (() => Promise<void>)[] = [() => ledger.end()];

const pool = new pg.Pool({ connectionString: settings.database, application_name: 'relay-app' });
pool.on('error', () => {});
closing.push(() => pool.end());

async function appBoss(): Promise<PgBoss> {
  const boss = new PgBoss({ connectionString: settings.database });
  boss.on('error', (error) => new Logger('AppBoss').error(error.message));
  await boss.start();
  closing.push(() => boss.stop({ graceful: false, close: true }));
  return boss;
}

async function options(): Promise<OutboxModuleOptions> {
  const { maxRetries, backoffMs } = settings.retry ?? {};
  const boss =
    settings.boss === 'hand' ? handBoss : settings.boss === 'app' ? await appBoss() : undefined;
  return {
    ...(settings.pool === 'app'
      ? { pool: new WatchedPool(pool) }
      : { connectionString: settings.database }),
    ...(settings.table !== undefined && { table: settings.table }),
    ...(settings.migrate !== undefined && { migrate: settings.migrate }),
    relay: settings.relay === false ? false : { ...settings.relay, ...(boss && { boss }) },
    retry: {
      ...(maxRetries !== undefined && { maxRetries }),
      ...(backoffMs !== undefined && { backoff: () => backoffMs }),
    },
  };
}

@Module({
  imports: [
    EventEmitterModule.forRoot(),
    OutboxModule.forRootAsync({ useFactory: () => options() }),
  ],
  providers: [Worker],
})
class RelayAppModule {}

const app = await NestFactory.createApplicationContext(RelayAppModule, {
  logger: ['fatal', 'error', 'warn', 'log'],
});
app.enableShutdownHooks();
// After Nest has called the first of its hooks. Once: the signal that Nest sends last is to end the process.
process.once('SIGTERM', () => setImmediate(() => say({ type: 'stopping' })));
const outbox = app.get(OutboxService);
say({ type: 'ready' });

async function obey(command: Command): Promise<void> {
  switch (command.do) {
    case 'go':
      points.release(command.point);
      return;
    case 'enqueue': {
      const { work, delayMs } = command;
      const enqueued = await outbox.enqueueMany(
        work.map((payload) => ({
          eventType: 'work',
          payload: Object.fromEntries(Object.entries(payload)),
          delayMs,
        })),
      );
      say({ type: 'enqueued', stored: enqueued.map(({ stored }) => stored) });
      return;
    }
    case 'enqueueInTransaction': {
      const client = await pool.connect();
      await client.query('BEGIN');
      const tx = command.unseen
        ? { query: (text: string, values: unknown[]) => client.query(text, values) }
        : client;
      await outbox.enqueue('work', { ...command.work }, {}, { tx });
      await sleep(command.commitAfterMs);
      await client.query('COMMIT');
      client.release();
      say({ type: 'committed' });
      return;
    }
    case 'tick':
      await handBoss.tick();
      say({ type: 'ticked' });
      return;
    case 'reap':
      say({ type: 'reaped', total: await outbox.reap() });
      return;
    case 'close':
      await app.close();
      for (const close of closing.toReversed()) await close();
      say({ type: 'closed' });
      // From here on only what was left behind keeps the process alive.
      commands.removeAllListeners('close');
      commands.close();
      process.stdin.destroy();
  }
}

const commands = createInterface({ input: process.stdin });
commands.on('line', (line) => {
  void obey(JSON.parse(line) as Command).catch((error: unknown) =>
    say({ type: 'refused', command: line, reason: String(error) }),
  );
});
// Whoever started it is gone: nobody would ever end it.
commands.on('close', () => process.exit(0));
