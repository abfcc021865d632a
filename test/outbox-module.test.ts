import { afterEach, describe, expect, it } from '@jest/globals';
import { Inject, Injectable, Module, type ModuleMetadata } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import { Test, type TestingModule } from '@nestjs/testing';
import pg from 'pg';
import {
  OutboxDeadLetters,
  OutboxModule,
  OutboxService,
  OutboxStore,
  type OutboxModuleOptions,
  type OutboxOptionsFactory,
} from '../src/index.js';
import { InMemoryOutboxStore } from '../src/testing.js';
import { createDatabase } from './support/database.js';
import { RecordingLogger } from './support/logger.js';
import { SILENT_BOSS, startApp } from './support/outbox-app.js';
import { startTcpProxy } from './support/tcp-proxy.js';
import { until } from './support/until.js';

const heard: object[] = [];
class Listener {
  @OnEvent('a')
  handle(event: object): void {
    heard.push(event);
  }
}

const started: TestingModule[] = [];
const closeAll = async (): Promise<void> => {
  for (const module of started.splice(0)) await module.close();
};
afterEach(async () => {
  heard.splice(0);
  await closeAll();
});

async function start(
  metadata: ModuleMetadata,
  log = new RecordingLogger(),
): Promise<TestingModule> {
  const module = await Test.createTestingModule(metadata).setLogger(log).compile();
  started.push(module);
  return module.init();
}

const memory = (): OutboxModuleOptions => ({ store: new InMemoryOutboxStore(), relay: false });

describe('OutboxModule.forRoot', () => {
  it('gives every module of the application OutboxService, OutboxDeadLetters and OutboxStore', async () => {
    @Injectable()
    class Quotes {
      constructor(
        readonly outbox: OutboxService,
        readonly deadLetters: OutboxDeadLetters,
        readonly store: OutboxStore,
      ) {}
    }
    @Module({ providers: [Quotes] })
    class QuotesModule {}
    const module = await start({
      imports: [QuotesModule, EventEmitterModule.forRoot(), OutboxModule.forRoot(memory())],
    });
    const quotes = module.get(Quotes, { strict: false });
    const { id } = await quotes.outbox.enqueue('a', {});
    expect(await quotes.deadLetters.count()).toBe(0);
    expect(await quotes.store.find(id)).toMatchObject({ status: 'PENDING' });
  });

  it('is seen only where it is imported with isGlobal: false', async () => {
    @Injectable()
    class Quotes {
      constructor(readonly outbox: OutboxService) {}
    }
    @Module({ providers: [Quotes] })
    class QuotesModule {}
    const outbox = OutboxModule.forRoot({ ...memory(), isGlobal: false });
    const imports = [EventEmitterModule.forRoot(), outbox, QuotesModule];
    await expect(start({ imports })).rejects.toThrow(/can't resolve dependencies of the Quotes/);

    @Module({ imports: [outbox], providers: [Quotes] })
    class QuotesWithOutbox {}
    const module = await start({ imports: [EventEmitterModule.forRoot(), QuotesWithOutbox] });
    expect(module.get(Quotes, { strict: false }).outbox).toBeInstanceOf(OutboxService);
  });

  it('with wrong options fails at the start, in words', async () => {
    const wrong = OutboxModule.forRoot({ ...memory(), relais: {} } as OutboxModuleOptions);
    await expect(start({ imports: [EventEmitterModule.forRoot(), wrong] })).rejects.toThrow(
      'unknown option relais: did you mean relay?',
    );
  });

  it('with a name that cannot be one fails at the start', async () => {
    const pool = new pg.Pool();
    const wrong = OutboxModule.forRoot({ pool, table: 'outbox"; DROP TABLE victim; --' });
    await expect(start({ imports: [EventEmitterModule.forRoot(), wrong] })).rejects.toThrow(
      'table must be at most 40 lower-case letters, digits or underscores and end in "_events"',
    );
  });
});

describe('OutboxModule.forRootAsync', () => {
  const store = new InMemoryOutboxStore();
  @Injectable()
  class Config {
    readonly maxPayloadBytes = 50;
  }
  @Module({ providers: [Config], exports: [Config] })
  class ConfigModule {}

  @Injectable()
  class OutboxConfig implements OutboxOptionsFactory {
    constructor(@Inject(Config) private readonly config: Config) {}

    async createOutboxOptions(): Promise<OutboxModuleOptions> {
      return { store, relay: false, maxPayloadBytes: this.config.maxPayloadBytes };
    }
  }
  @Module({ imports: [ConfigModule], providers: [OutboxConfig], exports: [OutboxConfig] })
  class OutboxConfigModule {}

  it.each([
    [
      'useFactory and inject',
      () =>
        OutboxModule.forRootAsync({
          imports: [ConfigModule],
          inject: [Config],
          useFactory: async ({ maxPayloadBytes }: Config) => ({
            store,
            relay: false,
            maxPayloadBytes,
          }),
        }),
    ],
    [
      'useClass',
      () => OutboxModule.forRootAsync({ imports: [ConfigModule], useClass: OutboxConfig }),
    ],
    [
      'useExisting',
      () => OutboxModule.forRootAsync({ imports: [OutboxConfigModule], useExisting: OutboxConfig }),
    ],
  ])('takes its options from %s', async (_, outbox) => {
    const module = await start({
      imports: [EventEmitterModule.forRoot(), outbox()],
      providers: [Listener],
    });
    const service = module.get(OutboxService);
    await service.enqueue('a', {});
    await service.processPending();
    expect(heard).toHaveLength(1);
    await expect(service.enqueue('a', { s: 'x'.repeat(50) })).rejects.toThrow('more than the 50');
  });

  it('with a factory that answers wrong options fails at the start', async () => {
    const outbox = OutboxModule.forRootAsync({
      useFactory: () => ({ connectionString: undefined }) as unknown as OutboxModuleOptions,
    });
    await expect(start({ imports: [EventEmitterModule.forRoot(), outbox] })).rejects.toThrow(
      'got none (is DATABASE_URL set?)',
    );
  });
});

describe('what is missing is told in one sentence', () => {
  it('EventEmitterModule', async () => {
    await expect(start({ imports: [OutboxModule.forRoot(memory())] })).rejects.toThrow(
      /^OutboxModule needs EventEmitterModule\.forRoot\(\) in the imports of your root module$/,
    );
  });

  it('EventEmitterModule that is not global and imported elsewhere', async () => {
    const emitter = EventEmitterModule.forRoot({ global: false });
    await expect(start({ imports: [emitter, OutboxModule.forRoot(memory())] })).rejects.toThrow(
      /^OutboxModule needs EventEmitterModule\.forRoot\(\)/,
    );
  });

  it('forRoot', async () => {
    await expect(start({ imports: [EventEmitterModule.forRoot(), OutboxModule] })).rejects.toThrow(
      /^OutboxModule has no options: import OutboxModule\.forRoot\(\{ … \}\) or forRootAsync in your root module, and nothing elsewhere: it is global$/,
    );
  });

  it('the schema, and what to run; and nothing stays open', async () => {
    await using database = await createDatabase();
    const { connectionString } = database;
    const outbox = OutboxModule.forRoot({ connectionString });
    await expect(start({ imports: [EventEmitterModule.forRoot(), outbox] })).rejects.toThrow(
      'the database has no outbox yet ("public"."outbox_events"): run "npx nestjs-outbox-relay migrate", or set migrate: true',
    );
    // Nobody closes what could not be initialised.
    started.splice(0);
  });
});

describe('a second OutboxModule in one application', () => {
  const twice = (...options: (OutboxModuleOptions & { isGlobal?: boolean })[]) =>
    start({
      imports: [EventEmitterModule.forRoot(), ...options.map((each) => OutboxModule.forRoot(each))],
      providers: [Listener],
    });

  it('is refused if both are global: nobody could say whose OutboxService is injected', async () => {
    await expect(twice(memory(), memory())).rejects.toThrow(
      'OutboxModule.forRoot() was imported twice: import it once, in your root module (for a second database, give isGlobal: false and import it where it is used)',
    );
  });

  it('works beside it with isGlobal: false, each with its own events', async () => {
    const billing = new InMemoryOutboxStore();
    const second = OutboxModule.forRoot({ store: billing, relay: false, isGlobal: false });
    @Injectable()
    class Billing {
      constructor(readonly outbox: OutboxService) {}
    }
    @Module({ imports: [second], providers: [Billing], exports: [Billing] })
    class BillingModule {}
    const main = new InMemoryOutboxStore();
    const module = await start({
      imports: [
        EventEmitterModule.forRoot(),
        OutboxModule.forRoot({ store: main, relay: false }),
        BillingModule,
      ],
      providers: [Listener],
    });
    await module.get(Billing, { strict: false }).outbox.enqueue('a', { from: 'billing' });
    expect(billing.all()).toHaveLength(1);
    expect(main.all()).toHaveLength(0);
    await module.get(Billing, { strict: false }).outbox.processPending();
    expect(heard).toEqual([expect.objectContaining({ from: 'billing' })]);
  });

  it('is the same one if the very object of forRoot() is imported in several modules', async () => {
    const outbox = OutboxModule.forRoot(memory());
    @Module({ imports: [outbox] })
    class One {}
    @Module({ imports: [outbox] })
    class Two {}
    await start({ imports: [EventEmitterModule.forRoot(), One, Two, outbox] });
  });

  it('in another application of the same process is another matter', async () => {
    const [one, two] = [new InMemoryOutboxStore(), new InMemoryOutboxStore()];
    await using first = await startApp({ outbox: { store: one }, providers: [Listener] });
    await using second = await startApp({ outbox: { store: two }, providers: [Listener] });
    await first.outbox.enqueue('a', { from: 'first' });
    expect(await second.outbox.processPending()).toBe(0);
    expect(await first.outbox.processPending()).toBe(1);
    expect(heard).toHaveLength(1);
  });
});

describe('with PostgreSQL', () => {
  it('migrate: true makes the schema at the start, from several processes at once too', async () => {
    await using database = await createDatabase();
    const boot = () =>
      start({
        imports: [
          EventEmitterModule.forRoot(),
          OutboxModule.forRoot({
            pool: database.pool,
            migrate: true,
            relay: { boss: SILENT_BOSS },
          }),
        ],
        providers: [Listener],
      });
    const [module] = await Promise.all([boot(), boot(), boot()]);
    const { id } = await module.get(OutboxService).enqueue('a', {});
    await until(async () => (await module.get(OutboxStore).find(id))?.status === 'COMPLETED', {
      what: 'it is delivered',
    });
    await closeAll();
  });

  it('works in another schema and under another name', async () => {
    await using database = await createDatabase();
    const { pool } = database;
    const names = { schema: 'billing', table: 'billing_outbox_events' };
    await using app = await startApp({
      outbox: { pool, migrate: true, ...names },
      providers: [Listener],
    });
    await app.outbox.enqueue('a', {});
    expect(await app.outbox.processPending()).toBe(1);
    expect(await database.query('SELECT status FROM billing.billing_outbox_events')).toEqual([
      { status: 'COMPLETED' },
    ]);
  });

  it("the user's pool is not ended, and gets no listener at its errors", async () => {
    await using database = await createDatabase();
    const pool = new pg.Pool({ connectionString: database.connectionString });
    pool.on('error', () => {});
    {
      await using app = await startApp({ outbox: { pool, migrate: true }, providers: [Listener] });
      for (let n = 0; n < 3; n++) {
        await app.outbox.enqueue('a', {});
        await app.outbox.processPending();
      }
      expect(pool.listenerCount('error')).toBe(1);
    }
    expect(pool.ended).toBe(false);
    expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
    await pool.end();
  });

  it('a database that refuses the role is told apart from one that is down', async () => {
    await using database = await createDatabase();
    const url = new URL(database.connectionString);
    url.username = 'nobody_of_that_name';
    const log = new RecordingLogger();
    const module = await start(
      {
        imports: [
          EventEmitterModule.forRoot(),
          OutboxModule.forRoot({ connectionString: url.href, relay: false }),
        ],
      },
      log,
    );
    expect(log.messages('error')[0]).toMatch(/28000.*check role, password and GRANTs/);
    await module.close();
  });

  it('a database that is down at the start leaves the process up, and all goes on when it comes', async () => {
    await using database = await createDatabase();
    await using proxy = await startTcpProxy(database.connectionString);
    proxy.refuse();
    const log = new RecordingLogger();
    const module = await start(
      {
        imports: [
          EventEmitterModule.forRoot(),
          // With its own pg-boss: that has to come up later as well.
          OutboxModule.forRoot({ connectionString: proxy.connectionString, migrate: true }),
        ],
        providers: [Listener],
      },
      log,
    );
    expect(log.messages('error')[0]).toMatch(
      /^cannot reach the outbox at start, will keep trying: .*ECONNREFUSED/,
    );
    await proxy.restore();
    const outbox = module.get(OutboxService);
    await until(async () => (await outbox.stats().catch(() => undefined)) !== undefined, {
      what: 'the schema is there',
    });
    const { id, stored } = await outbox.enqueue('a', {});
    expect(stored).toBe(true);
    await until(async () => (await module.get(OutboxStore).find(id))?.status === 'COMPLETED', {
      what: 'it is delivered',
    });
    await until(
      async () =>
        (await database.query(`SELECT FROM pg_namespace WHERE nspname = 'pgboss'`)).length === 1,
      { what: 'pg-boss has come up' },
    );
    // All connections go with the application, whatever it was doing.
    await closeAll();
    await until(() => proxy.connections === 0, { what: 'all connections are closed' });
  });

  it('a database that is down at the start of a process that only enqueues is migrated when it comes', async () => {
    await using database = await createDatabase();
    await using proxy = await startTcpProxy(database.connectionString);
    proxy.refuse();
    const module = await start({
      imports: [
        EventEmitterModule.forRoot(),
        OutboxModule.forRoot({
          connectionString: proxy.connectionString,
          migrate: true,
          relay: false,
        }),
      ],
    });
    await proxy.restore();
    await until(
      async () =>
        (await module
          .get(OutboxService)
          .stats()
          .catch(() => undefined)) !== undefined,
      { what: 'the schema is there' },
    );
    await closeAll();
  });
});

it('relay: false never delivers by itself, and processPending does', async () => {
  await using quiet = await startApp({
    outbox: { store: new InMemoryOutboxStore(), relay: false },
    providers: [Listener],
  });
  await using relaying = await startApp({
    outbox: { store: new InMemoryOutboxStore(), relay: {} },
    providers: [Listener],
  });
  const waiting = await quiet.outbox.enqueue('a', { in: 'quiet' });
  const later = await quiet.outbox.enqueue('a', { in: 'quiet' }, {}, { delayMs: 1 });
  // What the other one does by itself in this time, this one does not.
  const { id } = await relaying.outbox.enqueue('a', { in: 'relaying' }, {}, { delayMs: 30 });
  await relaying.eventIn('COMPLETED', id);
  expect(heard).toEqual([expect.objectContaining({ in: 'relaying' })]);
  expect(await quiet.event(waiting.id)).toMatchObject({ status: 'PENDING', retryCount: 0 });
  expect(await quiet.event(later.id)).toMatchObject({ status: 'PENDING', retryCount: 0 });
  expect(await quiet.outbox.processPending()).toBe(2);
  expect((await quiet.event(waiting.id)).status).toBe('COMPLETED');
});

it('boots with NestFactory as with Test', async () => {
  @Module({
    imports: [
      EventEmitterModule.forRoot(),
      OutboxModule.forRoot({ store: new InMemoryOutboxStore() }),
    ],
    providers: [Listener],
  })
  class AppModule {}
  const app = await NestFactory.createApplicationContext(AppModule, {
    logger: new RecordingLogger(),
    abortOnError: false,
  });
  try {
    const { id } = await app.get(OutboxService).enqueue('a', {});
    await until(async () => (await app.get(OutboxStore).find(id))?.status === 'COMPLETED', {
      what: 'it is delivered',
    });
  } finally {
    await app.close();
  }
});

describe('by hand', () => {
  it.each([0, -1, 1.5, 10_001, Number.NaN, '5' as never])(
    'processPending(%p) is refused',
    async (limit) => {
      await using app = await startApp({ outbox: memory() });
      await expect(app.outbox.processPending(limit)).rejects.toThrow(
        'limit must be a whole number from 1 to 10000',
      );
    },
  );

  it('processPending takes no more than it is told, oldest due first', async () => {
    await using app = await startApp({ outbox: memory(), providers: [Listener] });
    await app.outbox.enqueueMany(
      [5, 3, 4, 1, 2].map((n) => ({
        eventType: 'a',
        payload: { n },
        scheduledAt: new Date(n * 1_000),
      })),
    );
    expect(await app.outbox.processPending(2)).toBe(2);
    expect(heard).toEqual([expect.objectContaining({ n: 1 }), expect.objectContaining({ n: 2 })]);
    expect(await app.outbox.processPending(10)).toBe(3);
    expect(await app.outbox.processPending()).toBe(0);
  });
});
