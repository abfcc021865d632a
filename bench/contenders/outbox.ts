/** This library as a user sets it up: a Nest application with a plain `@OnEvent` method. */
import 'reflect-metadata';
import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import type { OutboxModuleOptions } from 'nestjs-outbox-relay';
import pg from 'pg';
import { AppModule } from './app-module.ts';
import type { BenchPayload, Contender, Listener } from './contender.ts';
import { outboxPackage } from './outbox-package.ts';
import { BUSINESS_INSERT, BUSINESS_TABLE, dueSql, payloadsSql } from './sql.ts';

const { OutboxModule, OutboxService, migrateOutbox } = outboxPackage;

export interface OutboxContenderOptions {
  readonly relay?: OutboxModuleOptions['relay'];
  /** Hands the outbox a pool that notes how long each claim takes. */
  readonly timeClaims?: boolean;
}

let listener: Listener = () => undefined;

class Listeners {
  async onEvent(payload: BenchPayload): Promise<void> {
    await listener(payload);
  }

  async onSlowEvent(payload: BenchPayload): Promise<void> {
    await listener(payload);
  }

  async onWake(): Promise<void> {}
}
decorate('onEvent', 'bench.event');
decorate('onSlowEvent', 'bench.slow');
decorate('onWake', 'bench.wake');

/** Decorators are not types, so Node does not run them. */
function decorate(method: keyof Listeners, eventType: string): void {
  const descriptor = Object.getOwnPropertyDescriptor(Listeners.prototype, method);
  OnEvent(eventType)(Listeners.prototype, method, descriptor as PropertyDescriptor);
}

export function create(url: string, options: OutboxContenderOptions): Contender {
  const admin = new pg.Pool({ connectionString: url, max: 10 });
  admin.on('error', () => {});
  const times: number[] = [];
  let app: INestApplicationContext | undefined;

  async function open(relay: OutboxModuleOptions['relay']): Promise<INestApplicationContext> {
    const where = options.timeClaims ? { pool: timingPool(url, times) } : { connectionString: url };
    app ??= await NestFactory.createApplicationContext(
      {
        module: AppModule,
        imports: [
          EventEmitterModule.forRoot(),
          OutboxModule.forRoot({ ...where, ...(relay !== undefined && { relay }) }),
        ],
        providers: [Listeners],
      },
      { logger: ['error', 'warn'] },
    );
    return app;
  }

  return {
    table: 'outbox_events',
    openSql: `SELECT EXISTS (SELECT FROM outbox_events WHERE status IN ('PENDING', 'PROCESSING')) AS open`,
    async prepare() {
      await migrateOutbox({ database: url });
      await admin.query(BUSINESS_TABLE);
    },
    async fill(backlog) {
      await admin.query(
        `INSERT INTO outbox_events (event_type, payload, scheduled_at)
         SELECT CASE WHEN (payload ->> 'slow')::boolean THEN 'bench.slow' ELSE 'bench.event' END, payload,
                ${dueSql(backlog.count)}
         FROM (${payloadsSql(backlog)}) AS p ORDER BY n`,
      );
    },
    async start(given) {
      listener = given;
      await open(options.relay);
    },
    async enqueuer() {
      const outbox = (await open(app === undefined ? false : options.relay)).get(OutboxService);
      return async (payload) => {
        const client = await admin.connect();
        try {
          await client.query('BEGIN');
          await client.query(BUSINESS_INSERT, [payload.text]);
          await outbox.enqueue('bench.event', { ...payload }, {}, { tx: client });
          await client.query('COMMIT');
        } finally {
          client.release();
        }
      };
    },
    claimTimes: () => times,
    async prune() {
      const outbox = (await open(false)).get(OutboxService);
      const { completed, failed } = await outbox.deleteProcessed();
      return completed + failed;
    },
    async wake() {
      await app?.get(OutboxService).enqueue('bench.wake', {});
    },
  };
}

/** A pool that notes how long the statements took that brought events. */
function timingPool(url: string, times: number[]): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: 10 });
  pool.on('error', () => {});
  const query = pool.query.bind(pool) as unknown as (
    ...args: unknown[]
  ) => Promise<{ rows: unknown[] }>;
  const timing = async (...args: unknown[]): Promise<{ rows: unknown[] }> => {
    const before = performance.now();
    const answer = await query(...args);
    const [config] = args as [{ text?: string } | undefined];
    if (config?.text?.includes('claim') && answer.rows.length > 0)
      times.push(performance.now() - before);
    return answer;
  };
  return Object.assign(pool, { query: timing });
}
