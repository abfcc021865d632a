/** Ways to write events. */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { EventEmitterModule } from '@nestjs/event-emitter';
import { NestFactory } from '@nestjs/core';
import type { OutboxService } from 'nestjs-outbox-relay';
import 'reflect-metadata';
import { AppModule } from './app-module.ts';
import { FILLER } from './contender.ts';
import { outboxPackage } from './outbox-package.ts';
import { BUSINESS_INSERT } from './sql.ts';

/** Writes. @returns how many events */
export type Way = () => Promise<number>;

export type WayName = keyof typeof WAYS;

const ROWS = 1_000;
const TYPE = 'bench.event';
const payload = (): Record<string, unknown> => ({ n: 1, slow: false, text: FILLER });

const INSERT = {
  name: 'insert',
  text: 'INSERT INTO outbox_events (id, event_type, payload) VALUES ($1, $2, $3)',
};

export const WAYS = {
  'business-only': (url: string, connections: number) =>
    inTransactions(url, connections, async () => {}),
  'insert-tx': (url: string, connections: number) =>
    inTransactions(url, connections, async (client) => {
      await client.query({ ...INSERT, values: [randomUUID(), TYPE, payload()] });
    }),
  'insert-tx-unnamed': (url: string, connections: number) =>
    inTransactions(url, connections, async (client) => {
      await client.query(INSERT.text, [randomUUID(), TYPE, payload()]);
    }),
  'enqueue-tx': async (url: string, connections: number) => {
    const outbox = await openOutbox(url, connections);
    return inTransactions(url, connections, async (client) => {
      await outbox.enqueue(TYPE, payload(), {}, { tx: client });
    });
  },
  insert: (url: string, connections: number) =>
    onPool(url, connections, async (pool) => {
      await pool.query({ ...INSERT, values: [randomUUID(), TYPE, payload()] });
      return 1;
    }),
  'insert-notify': (url: string, connections: number) =>
    onPool(url, connections, async (pool) => {
      await pool.query({
        name: 'insert-notify',
        text: `WITH stored AS (${INSERT.text} RETURNING 1) SELECT pg_notify('bench', '') FROM stored`,
        values: [randomUUID(), TYPE, payload()],
      });
      return 1;
    }),
  enqueue: async (url: string, connections: number) => {
    const outbox = await openOutbox(url, connections);
    return async () => {
      await outbox.enqueue(TYPE, payload());
      return 1;
    };
  },
  'recordset-1000': (url: string, connections: number) =>
    onPool(url, connections, async (pool) => {
      const rows = Array.from({ length: ROWS }, () => ({ id: randomUUID(), payload: payload() }));
      await pool.query({
        name: 'recordset',
        text: `INSERT INTO outbox_events (id, event_type, payload)
               SELECT id, '${TYPE}', payload FROM jsonb_to_recordset($1) AS event (id uuid, payload jsonb)`,
        values: [JSON.stringify(rows)],
      });
      return ROWS;
    }),
  'unnest-1000': (url: string, connections: number) =>
    onPool(url, connections, async (pool) => {
      const rows = Array.from({ length: ROWS }, () => ({
        id: randomUUID(),
        payload: JSON.stringify(payload()),
      }));
      await pool.query({
        name: 'unnest',
        text: `INSERT INTO outbox_events (id, event_type, payload)
               SELECT id, '${TYPE}', payload FROM unnest($1::uuid[], $2::jsonb[]) AS event (id, payload)`,
        values: [rows.map(({ id }) => id), rows.map((row) => row.payload)],
      });
      return ROWS;
    }),
  'enqueue-many-1000': async (url: string, connections: number) => {
    const outbox = await openOutbox(url, connections);
    return async () => {
      const events = Array.from({ length: ROWS }, () => ({
        eventType: TYPE,
        payload: payload(),
      }));
      await outbox.enqueueMany(events);
      return ROWS;
    };
  },
} as const satisfies Record<string, (url: string, connections: number) => Promise<Way>>;

async function onPool(
  url: string,
  connections: number,
  write: (pool: pg.Pool) => Promise<number>,
): Promise<Way> {
  const pool = openPool(url, connections);
  return () => write(pool);
}

/** BEGIN, a row of business data, the event, COMMIT. */
async function inTransactions(
  url: string,
  connections: number,
  store: (client: pg.PoolClient) => Promise<void>,
): Promise<Way> {
  return onPool(url, connections, async (pool) => {
    const client = await pool.connect();
    try {
      await client.query('BEGIN');
      await client.query(BUSINESS_INSERT, [FILLER]);
      await store(client);
      await client.query('COMMIT');
      return 1;
    } finally {
      client.release();
    }
  });
}

function openPool(url: string, connections: number): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: connections });
  pool.on('error', () => {});
  return pool;
}

/** A process that only stores: what is measured is the writing. */
async function openOutbox(url: string, connections: number): Promise<OutboxService> {
  const { OutboxModule, OutboxService: Service } = outboxPackage;
  const pool = openPool(url, connections);
  const app = await NestFactory.createApplicationContext(
    {
      module: AppModule,
      imports: [EventEmitterModule.forRoot(), OutboxModule.forRoot({ pool, relay: false })],
    },
    { logger: ['error', 'warn'] },
  );
  return app.get(Service);
}
