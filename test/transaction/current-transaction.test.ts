import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Inject, Injectable, Module } from '@nestjs/common';
import { EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import { Test, type TestingModule } from '@nestjs/testing';
import type { TransactionHost as Host } from '@nestjs-cls/transactional';
import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres';
import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { DataSource } from 'typeorm';
import {
  migrateOutbox,
  OutboxInbox,
  OutboxModule,
  OutboxService,
  type OutboxTransaction,
} from '../../src/index.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { startApp } from '../support/outbox-app.js';
import { quotes } from './tools/drizzle.js';
import { Quote } from './tools/typeorm.js';

// After the static imports: these are CommonJS and require Nest, which Jest must have evaluated by then.
const { ClsModule } = await import('nestjs-cls');
const { ClsPluginTransactional, Transactional, TransactionHost } =
  await import('@nestjs-cls/transactional');
const { TransactionalAdapterDrizzleOrm } =
  await import('@nestjs-cls/transactional-adapter-drizzle-orm');
const { TransactionalAdapterTypeOrm } = await import('@nestjs-cls/transactional-adapter-typeorm');

let database: TestDatabase;

beforeAll(async () => {
  database = await createDatabase();
  await migrateOutbox({ database: database.pool });
  await database.query('CREATE TABLE quotes (id integer PRIMARY KEY)');
});
beforeEach(async () => {
  await database.query('TRUNCATE outbox_events, outbox_inbox, quotes');
});
afterAll(() => database.drop());

const stored = async (): Promise<number> =>
  (await database.query('SELECT FROM outbox_events')).length;

describe('the current transaction', () => {
  const current = new AsyncLocalStorage<OutboxTransaction>();
  const start = (currentTransaction: () => unknown = () => current.getStore()) =>
    startApp({
      outbox: {
        pool: database.pool,
        currentTransaction: currentTransaction as () => OutboxTransaction | undefined,
      },
    });
  let client: pg.PoolClient;

  beforeEach(async () => {
    client = await database.pool.connect();
    await client.query('BEGIN');
  });
  afterEach(async () => {
    await client.query('ROLLBACK');
    client.release();
  });

  it('is what a call without tx is part of', async () => {
    await using app = await start();
    await current.run(client, async () => {
      expect(await app.outbox.enqueue('a', {})).toMatchObject({ stored: true });
      await app.outbox.enqueueMany([{ eventType: 'a', payload: {} }]);
    });
    expect(await stored()).toBe(0);
    await client.query('COMMIT');
    expect(await stored()).toBe(2);
  });

  it.each([undefined, null])(
    'if there is none (%p), the call stands for itself',
    async (nothing) => {
      await using app = await start(() => nothing);
      await app.outbox.enqueue('a', {});
      expect(await stored()).toBe(1);
    },
  );

  it('gives way to a tx that is passed', async () => {
    await using app = await start();
    const other = await database.pool.connect();
    try {
      await other.query('BEGIN');
      await current.run(client, () => app.outbox.enqueue('a', {}, {}, { tx: other }));
      await other.query('COMMIT');
      expect(await stored()).toBe(1);
    } finally {
      other.release();
    }
  });

  it("is left deliberately with tx: 'none'", async () => {
    await using app = await start();
    await current.run(client, async () => {
      await app.outbox.enqueue('a', {}, {}, { tx: 'none' });
      await app.outbox.enqueueMany([{ eventType: 'a', payload: {} }], { tx: 'none' });
    });
    await client.query('ROLLBACK');
    expect(await stored()).toBe(2);
  });

  it.each([undefined, null])('is not left by a slip, tx: %p', async (slip) => {
    await using app = await start();
    const options = { tx: slip as never };
    await current.run(client, async () => {
      await expect(app.outbox.enqueue('a', {}, {}, options)).rejects.toThrow(`tx is ${slip}: pass`);
      await expect(
        app.outbox.enqueueMany([{ eventType: 'a', payload: {} }], options),
      ).rejects.toThrow(`tx is ${slip}: pass`);
    });
    expect(await stored()).toBe(0);
  });

  it('that is no open transaction is refused, and the message says where it came from', async () => {
    await using app = await start(() => database.pool);
    await expect(app.outbox.enqueue('a', {})).rejects.toThrow(
      'what the option currentTransaction answered as tx is a pool',
    );
    await expect(app.module.get(OutboxInbox).record(randomUUID(), 'a')).rejects.toThrow(
      'what the option currentTransaction answered as tx is a pool',
    );
    expect(await stored()).toBe(0);
  });

  it('that cannot be asked for fails the call: nothing is stored or emitted beside it', async () => {
    await using app = await start(() => {
      throw new Error('no context');
    });
    await expect(app.outbox.enqueue('a', {})).rejects.toThrow('no context');
    expect(await stored()).toBe(0);
    expect(app.log.messages('error')).toEqual([]);
  });

  it('in which an enqueue fails is not made up for by emitting in memory', async () => {
    await using app = await start();
    await expect(client.query('SELECT 1/0')).rejects.toThrow();
    await current.run(client, async () => {
      await expect(app.outbox.enqueue('a', {})).rejects.toMatchObject({ code: '25P02' });
    });
    expect(app.log.messages('error')).toEqual([]);
  });

  it('of a request does not reach into the deliveries it sets going', async () => {
    const seen: unknown[] = [];
    class Listener {
      @OnEvent('a')
      handle(): void {
        seen.push(current.getStore());
      }
    }
    await using app = await startApp({
      outbox: {
        pool: database.pool,
        relay: {},
        currentTransaction: () => current.getStore(),
      },
      providers: [Listener],
    });
    const { id } = await current.run(client, async () => {
      const enqueued = await app.outbox.enqueue('a', {});
      await client.query('COMMIT');
      return enqueued;
    });
    await app.eventIn('COMPLETED', id);
    expect(seen).toEqual([undefined]);
  });

  it('must be asked for by a function', async () => {
    const outbox = { pool: database.pool, currentTransaction: client as never };
    await expect(startApp({ outbox })).rejects.toThrow(
      'currentTransaction must be a function that answers a transaction',
    );
  });
});

const DRIZZLE = Symbol('drizzle');

describe('with @nestjs-cls/transactional', () => {
  /** What a service of an application looks like: it does not know of transactions. */
  @Injectable()
  class Orders {
    constructor(
      private readonly outbox: OutboxService,
      @Inject(TransactionHost) private readonly txHost: Host,
    ) {}

    @Transactional()
    async place(id: number, problem?: string): Promise<void> {
      await insert(this.txHost.tx, id);
      await this.outbox.enqueue('order.placed', { id });
      const seen = await database.query(
        `SELECT FROM outbox_events WHERE event_type = 'order.placed' AND payload->>'id' = $1`,
        [String(id)],
      );
      expect(seen).toEqual([]);
      if (problem !== undefined) throw new Error(problem);
    }

    @Transactional()
    async placeAndTell(id: number): Promise<void> {
      await this.outbox.enqueue('order.tried', { id }, {}, { tx: 'none' });
      await this.place(id, 'out of stock');
    }

    async mention(): Promise<void> {
      await this.outbox.enqueue('order.mentioned', {});
    }
  }

  let pool: pg.Pool;
  let dataSource: DataSource;
  let app: TestingModule;

  const insert = async (tx: unknown, id: number): Promise<unknown> =>
    tx instanceof Object && 'insert' in tx && 'dialect' in tx
      ? (tx as unknown as NodePgDatabase).insert(quotes).values({ id })
      : (tx as DataSource['manager']).insert(Quote, { id });

  describe.each(['TypeORM', 'Drizzle'] as const)('and %s', (tool) => {
    beforeEach(async () => {
      pool = new pg.Pool({ connectionString: database.connectionString });
      dataSource = new DataSource({
        type: 'postgres',
        url: database.connectionString,
        entities: [Quote],
      });
      await dataSource.initialize();

      @Module({
        providers: [
          { provide: DataSource, useValue: dataSource },
          { provide: DRIZZLE, useValue: drizzle({ client: pool }) },
        ],
        exports: [DataSource, DRIZZLE],
      })
      class DatabaseModule {}

      app = await Test.createTestingModule({
        imports: [
          EventEmitterModule.forRoot(),
          ClsModule.forRoot({
            plugins: [
              new ClsPluginTransactional({
                imports: [DatabaseModule],
                adapter:
                  tool === 'TypeORM'
                    ? new TransactionalAdapterTypeOrm({ dataSourceToken: DataSource })
                    : new TransactionalAdapterDrizzleOrm({ drizzleInstanceToken: DRIZZLE }),
              }),
            ],
          }),
          OutboxModule.forRootAsync({
            inject: [TransactionHost],
            useFactory: (txHost: Host) => ({
              pool: database.pool,
              relay: false as const,
              currentTransaction: () => (txHost.isTransactionActive() ? txHost.tx : undefined),
            }),
          }),
        ],
        providers: [Orders],
      }).compile();
      await app.init();
    });
    afterEach(async () => {
      await app.close();
      await dataSource.destroy();
      await pool.end();
    });

    const types = async (): Promise<unknown[]> =>
      (await database.query('SELECT event_type FROM outbox_events ORDER BY 1')).map(
        (row) => row['event_type'] as unknown,
      );

    it('a @Transactional method and its events are one', async () => {
      await app.get(Orders).place(1);
      expect(await types()).toEqual(['order.placed']);
      await expect(app.get(Orders).place(2, 'out of stock')).rejects.toThrow('out of stock');
      expect(await types()).toEqual(['order.placed']);
      expect(await database.query('SELECT id FROM quotes')).toEqual([{ id: 1 }]);
    });

    it('outside of one, an event stands for itself', async () => {
      await app.get(Orders).mention();
      expect(await types()).toEqual(['order.mentioned']);
    });

    it("tx: 'none' stays although the rest is rolled back", async () => {
      await expect(app.get(Orders).placeAndTell(3)).rejects.toThrow('out of stock');
      expect(await types()).toEqual(['order.tried']);
      expect(await database.query('SELECT id FROM quotes')).toEqual([]);
    });
  });
});
