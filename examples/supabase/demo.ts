/**
 * node build/examples/supabase/demo.js
 *
 * Plays the example against the project that SUPABASE_URL, SUPABASE_SERVICE_ROLE_KEY and DATABASE_URL name, or against
 * one of its own that is thrown away: PostgreSQL and PostgREST from npm.
 */
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { migrateOutbox, OutboxService } from 'nestjs-outbox-relay';
import pg from 'pg';
import { hasPostgrest } from '../../tools/postgrest.ts';
import { openLocalProject, startSupabaseCluster } from '../../tools/supabase-project.ts';

const SCHEMA = path.join(import.meta.dirname, '../../../examples/supabase/schema.sql');
const DELIVERED_WITHIN_MS = 20_000;

const cleanUp = process.env['SUPABASE_URL'] === undefined ? await useOwnProject() : undefined;
try {
  await prepare(process.env['DATABASE_URL'] ?? '');
  await play();
} finally {
  await cleanUp?.();
}

async function useOwnProject(): Promise<() => Promise<void>> {
  if (!hasPostgrest()) {
    throw new Error(
      'There is no PostgREST for this platform (only for linux-x64): set SUPABASE_URL, SUPABASE_SERVICE_ROLE_KEY and ' +
        'DATABASE_URL of a project',
    );
  }
  const cluster = await startSupabaseCluster();
  const project = await openLocalProject(cluster, { database: 'example' });
  process.env['SUPABASE_URL'] = project.url;
  process.env['SUPABASE_SERVICE_ROLE_KEY'] = project.keys.secret;
  process.env['DATABASE_URL'] = project.databaseUrl;
  return async () => {
    await project.remove();
    await cluster.remove();
  };
}

/** Once in the life of a project. */
async function prepare(database: string): Promise<void> {
  await migrateOutbox({ database });
  const client = new pg.Client({ connectionString: database });
  await client.connect();
  await client.query(readFileSync(SCHEMA, 'utf8'));
  await client.end();
  await untilKnownToTheApi();
}

/** The Data API learns of new functions within moments. Asked for a request without a name, which is refused. */
async function untilKnownToTheApi(): Promise<void> {
  const key = process.env['SUPABASE_SERVICE_ROLE_KEY'] ?? '';
  const url = `${process.env['SUPABASE_URL']}/rest/v1/rpc/create_quote_request`;
  for (let known = false; !known; await sleep(50)) {
    const answer = await fetch(url, {
      method: 'POST',
      headers: { apikey: key, authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ project_name: '' }),
      signal: AbortSignal.timeout(10_000),
    });
    known = answer.status !== 404;
  }
}

async function play(): Promise<void> {
  // Only now: it reads its settings when it is loaded.
  const { AppModule, QuoteRequestsService } = await import('./app.module.js');
  const app = await NestFactory.createApplicationContext(AppModule, { logger: ['error', 'warn'] });
  try {
    const quotes = app.get(QuoteRequestsService);
    const outbox = app.get(OutboxService);

    const id = await quotes.create('Office renovation');
    await quotes.assign(id, 7);
    await quotes.create('').then(
      () => console.log('it should have been refused'),
      () => console.log('refused: neither a quote request nor an event'),
    );

    const deadline = performance.now() + DELIVERED_WITHIN_MS;
    for (let waiting = 1; waiting > 0 && performance.now() < deadline; await sleep(50)) {
      const { due, scheduled, processing } = await outbox.stats();
      waiting = due + scheduled + processing;
    }
    const { due, scheduled, processing, failed } = await outbox.stats();
    console.log(`left in the outbox: ${due + scheduled + processing + failed}`);
  } finally {
    await app.close();
  }
}
