/**
 * @fullstackhouse/nestjs-outbox, in the Nest 11 that it needs. An event that every listener has heard is deleted.
 *
 * With its TypeORM driver: with the one for MikroORM (4.1.2), a backlog larger than one poll never ends, for events
 * that have been delivered and deleted are written back when the next ones are claimed.
 */
import 'reflect-metadata';
import fullstackhouse from '@fullstackhouse/nestjs-outbox';
import typeormDriver from '@fullstackhouse/nestjs-outbox-typeorm-driver';
import { NestFactory } from '@nestjs/core';
import pg from 'pg';
import { DataSource } from 'typeorm';
import { AppModule } from '../contenders/app-module.ts';
import { BUSINESS_TABLE, payloadsSql } from '../contenders/sql.ts';

const EVENT = {
  name: 'bench.event',
  listeners: { retentionPeriod: 86_400_000, maxExecutionTime: 15_000, maxRetries: 5 },
};

let listener = async () => {};

class Listeners {
  async onEvent(payload) {
    await listener(payload);
  }
}
fullstackhouse.OnEvent(EVENT.name)(
  Listeners.prototype,
  'onEvent',
  Object.getOwnPropertyDescriptor(Listeners.prototype, 'onEvent'),
);

/**
 * @param {string} url
 * @param {{ pool: number, module: object }} options
 * @returns {import('../contenders/contender.ts').Contender}
 */
export function create(url, { pool: max, module: settings }) {
  const pool = new pg.Pool({ connectionString: url, max: 5 });
  pool.on('error', () => {});

  const openSource = async () => {
    const source = new DataSource({
      type: 'postgres',
      url,
      entities: [typeormDriver.TypeOrmOutboxTransportEvent],
      poolSize: max,
    });
    return source.initialize();
  };

  return {
    table: 'outbox_transport_event',
    openSql: 'SELECT EXISTS (SELECT FROM outbox_transport_event) AS open',
    async prepare() {
      const source = await openSource();
      const runner = source.createQueryRunner();
      // Not by runMigrations: TypeORM refuses the name of the second one.
      for (const Migration of typeormDriver.OutboxTransportEventMigrations) {
        await new Migration().up(runner);
      }
      await source.destroy();
      await pool.query(BUSINESS_TABLE);
    },
    async fill(backlog) {
      await pool.query(
        `INSERT INTO outbox_transport_event
           (event_name, event_payload, delivered_to_listeners, attempt_at, expire_at, inserted_at)
         SELECT '${EVENT.name}', payload, '[]', now_ms, now_ms + 86400000, now_ms
         FROM (${payloadsSql(backlog)}) AS p, (SELECT (extract(epoch FROM now()) * 1000)::bigint - 1 AS now_ms) AS clock`,
      );
    },
    async start(given) {
      listener = given;
      const driverFactory = new typeormDriver.TypeORMDatabaseDriverFactory(await openSource());
      await NestFactory.createApplicationContext(
        {
          module: AppModule,
          imports: [
            fullstackhouse.OutboxModule.registerAsync({
              isGlobal: true,
              enableDefaultMiddlewares: false,
              imports: [],
              useFactory: () => ({ driverFactory, events: [EVENT], ...settings }),
            }),
          ],
          providers: [Listeners],
        },
        { logger: ['error'] },
      );
    },
  };
}
