/**
 * What both consumers do with the library; each compiles it its own way and starts it from its own main.ts.
 * A quote request and its event are stored in one transaction, one listener fails at first, the other does not.
 */
import 'reflect-metadata';
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Module, Scope } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import {
  OutboxModule,
  OutboxService,
  OutboxStore,
  exponentialBackoff,
  type Delivered,
  type Enqueued,
} from 'nestjs-outbox-relay';
import { OutboxDashboardModule } from 'nestjs-outbox-relay/dashboard';
import { InMemoryOutboxStore } from 'nestjs-outbox-relay/testing';
import pg from 'pg';

const QUOTE_REQUEST_CREATED = 'quote_request.created';

declare module 'nestjs-outbox-relay' {
  interface OutboxEventMap {
    'quote_request.created': { quoteRequestId: string; projectName: string };
  }
}

const calls: string[] = [];

@Injectable()
class QuoteRequestsService {
  constructor(private readonly outbox: OutboxService) {}

  async create(pool: pg.Pool, projectName: string, end: 'COMMIT' | 'ROLLBACK'): Promise<Enqueued> {
    const client = await pool.connect();
    try {
      await client.query('BEGIN');
      const { rows } = await client.query<{ id: string }>(
        'INSERT INTO quote_requests (project_name) VALUES ($1) RETURNING id',
        [projectName],
      );
      const quoteRequestId = String(rows[0]?.id);
      const enqueued = await this.outbox.enqueue(
        QUOTE_REQUEST_CREATED,
        { quoteRequestId, projectName },
        { source: 'consumer' },
        { tx: client },
      );
      await client.query(end);
      return enqueued;
    } finally {
      client.release();
    }
  }
}

@Injectable()
class NotificationListener {
  @OnEvent(QUOTE_REQUEST_CREATED)
  async notify(event: Delivered<typeof QUOTE_REQUEST_CREATED>): Promise<void> {
    calls.push(`notify ${event.projectName}, attempt ${event._outbox.attempt}`);
    await sleep(1, undefined, { signal: event._outbox.signal });
    if (event._outbox.attempt === 1) throw new Error('the gateway is down');
  }
}

@Injectable({ scope: Scope.REQUEST })
class AuditListener {
  @OnEvent(QUOTE_REQUEST_CREATED)
  async record({ projectName, _outbox }: Delivered<typeof QUOTE_REQUEST_CREATED>): Promise<void> {
    calls.push(`record ${projectName} from ${String(_outbox.metadata['source'])}`);
  }
}

const PASSWORD = 'known to the consumer';
const connectionString = process.env['DATABASE_URL'] ?? '';

@Module({
  imports: [
    EventEmitterModule.forRoot(),
    OutboxModule.forRoot({
      connectionString,
      // Minutes are too long to wait for here.
      retry: { backoff: (retryCount) => exponentialBackoff(retryCount) / 1_000 },
    }),
    OutboxDashboardModule.forRoot({
      credentials: [{ username: 'ops', password: PASSWORD, rights: 'act' }],
    }),
  ],
  providers: [QuoteRequestsService, NotificationListener, AuditListener],
})
class AppModule {}

/** Rejects if anything is not as it should be. */
export async function run(): Promise<void> {
  assert.ok(new InMemoryOutboxStore() instanceof OutboxStore, 'both doors lead into one house');
  const pool = new pg.Pool({ connectionString });
  await pool.query(
    'CREATE TABLE quote_requests (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), project_name text)',
  );
  const app = await NestFactory.create(AppModule, {
    logger: ['warn', 'error'],
    abortOnError: false,
  });
  await app.listen(0, '127.0.0.1');
  await checkDashboard(`${await app.getUrl()}/outbox`);
  const quoteRequests = app.get(QuoteRequestsService);

  const kept = await quoteRequests.create(pool, 'kept', 'COMMIT');
  assert.equal(kept.stored, true);
  await quoteRequests.create(pool, 'rolled back', 'ROLLBACK');

  const rows = () =>
    pool
      .query(
        'SELECT id, status, retry_count, last_error, acknowledged_by FROM public.outbox_events',
      )
      .then((result) => result.rows as Record<string, unknown>[]);
  for (let tries = 0; (await rows())[0]?.['status'] !== 'COMPLETED'; tries++) {
    assert.ok(tries < 300, `not COMPLETED in time: ${JSON.stringify(await rows())}`);
    await sleep(50);
  }
  assert.deepEqual(await rows(), [
    {
      id: kept.id,
      status: 'COMPLETED',
      retry_count: 1,
      last_error: 'NotificationListener.notify: the gateway is down',
      acknowledged_by: ['AuditListener.record'],
    },
  ]);
  // The one that succeeded at once was not called again with the other.
  assert.deepEqual(calls.toSorted(), [
    'notify kept, attempt 1',
    'notify kept, attempt 2',
    'record kept from consumer',
  ]);
  const { rows: projects } = await pool.query('SELECT project_name FROM quote_requests');
  assert.deepEqual(projects, [{ project_name: 'kept' }]);

  // The relay's clockwork as well: pg-boss ticks in this database.
  for (let tries = 0; !(await ticks(pool)); tries++) {
    assert.ok(tries < 300, 'pg-boss has not ticked in time');
    await sleep(50);
  }
  await app.close();
  await pool.end();
  console.log(`delivered: ${calls.join('; ')}`);
}

/** Closed without the password, and whole with it: the page, its style and its scripts. */
async function checkDashboard(url: string): Promise<void> {
  assert.equal((await fetch(url)).status, 401);
  const authorization = `Basic ${Buffer.from(`ops:${PASSWORD}`).toString('base64')}`;
  const page = await fetch(url, { headers: { authorization } });
  assert.equal(page.status, 200);
  const files = (await page.text()).match(/[^"]*assets\/[^"]*/g) ?? [];
  assert.equal(files.length, 4);
  for (const file of files) {
    const asset = await fetch(new URL(file, url), { headers: { authorization } });
    assert.equal(asset.status, 200, file);
    assert.ok((await asset.text()).length > 1_000, file);
  }
}

async function ticks(pool: pg.Pool): Promise<boolean> {
  const { rows } = await pool.query<{ installed: string | null }>(
    `SELECT to_regclass('pgboss.job') AS installed`,
  );
  if (rows[0]?.installed == null) return false;
  const done = await pool.query(
    `SELECT FROM pgboss.job WHERE name = 'process-outbox' AND state = 'completed'`,
  );
  return done.rows.length > 0;
}
