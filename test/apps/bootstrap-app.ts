/**
 * A Nest application that runs a gate, as a process of its own so that it can be killed.
 *
 * It is told what to be by the environment variable BOOTSTRAP_APP (JSON, see `BootstrapAppSettings`), runs the gate when
 * a line says `run`, and says what came of it in lines of JSON on stdout. Its listener notes each chunk in the table
 * `fanned_out`, on a connection of its own.
 */
import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import {
  BootstrapPublisher,
  OutboxModule,
  type PgClient,
  type PgPool,
  type PgQuery,
} from 'nestjs-outbox-relay';
import { createInterface } from 'node:readline';
import pg from 'pg';

export interface BootstrapAppSettings {
  readonly database: string;
  readonly name: string;
  /** Stand still there for good: in the listener, after it has noted that chunk; or when all chunks are through. */
  readonly hold?: { readonly chunk: number } | 'stamping';
  /** Leave work behind in the listener that fails later. */
  readonly stray?: boolean;
  /** The application listens to unhandled rejections itself. */
  readonly listensToRejections?: boolean;
}

const settings = JSON.parse(process.env['BOOTSTRAP_APP'] ?? '{}') as BootstrapAppSettings;

function say(message: { type: string } & Record<string, unknown>): void {
  console.log(JSON.stringify(message));
}

if (settings.listensToRejections === true)
  process.on('unhandledRejection', () => say({ type: 'rejection' }));

const pool = new pg.Pool({ connectionString: settings.database });
pool.on('error', () => {});

/** Stands still before the stamp is sent. */
class WatchedPool implements PgPool {
  async query(config: PgQuery): Promise<{ rows: unknown[] }> {
    if (settings.hold === 'stamping' && config.text.includes('sentinel_stamp')) {
      say({ type: 'stamping' });
      await new Promise(() => {});
    }
    return pool.query<Record<string, unknown>>(config as pg.QueryConfig);
  }

  async connect(): Promise<PgClient> {
    return pool.connect();
  }
}

@Injectable()
class FanOut {
  @OnEvent('record.bulk.upserted')
  async note({ n }: { n: number }): Promise<void> {
    if (settings.stray === true) void failLater();
    await pool.query('INSERT INTO fanned_out (n, app) VALUES ($1, $2)', [n, settings.name]);
    const { hold } = settings;
    if (typeof hold !== 'object' || hold.chunk !== n) return;
    say({ type: 'holding' });
    await new Promise(() => {});
  }
}

async function failLater(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 20));
  throw new Error('the queue was down after all');
}

@Module({
  imports: [
    EventEmitterModule.forRoot(),
    OutboxModule.forRoot({ pool: new WatchedPool(), relay: false }),
  ],
  providers: [FanOut],
})
class BootstrapAppModule {}

const app = await NestFactory.createApplicationContext(BootstrapAppModule, {
  logger: ['fatal', 'error', 'warn', 'log'],
});
const publisher = app.get(BootstrapPublisher);
say({ type: 'ready' });

async function run(): Promise<void> {
  try {
    const result = await publisher.run({
      key: 'records',
      eventType: 'record.bulk.upserted',
      load: async () => {
        await pool.query('INSERT INTO loaded (app) VALUES ($1)', [settings.name]);
        return [1, 2, 3];
      },
      payload: ([n]) => ({ n }),
      chunkSize: 1,
      whenEmpty: 'leave',
      leaseMs: 1_000,
    });
    say({ type: 'result', ...result });
  } catch (error) {
    say({ type: 'failed', error: String(error) });
  }
}

const commands = createInterface({ input: process.stdin });
commands.on('line', () => void run());
// Whoever started it is gone: nobody would ever end it.
commands.on('close', () => process.exit(0));
