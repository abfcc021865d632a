/**
 * npm run example:bootstrap    tells the story; exit status 0 only if everything was as it is told
 */
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import {
  BootstrapPublisher,
  DeterministicGateError,
  GateClosedError,
  TransientGateError,
} from 'nestjs-outbox-relay';
import assert from 'node:assert/strict';
import pg from 'pg';
import { startCluster } from '../../tools/postgres-cluster.ts';
import { AppModule } from './app.module.js';
import { RecordsProvider } from './provider.js';
import { RecordsSync } from './records.sync.js';

const startedAt = performance.now();
const say = (text: string): void => {
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1).padStart(5);
  console.log(`${seconds} s  ${text}`);
};
const title = (text: string): void => console.log(`\n── ${text}`);

say('starting a PostgreSQL of its own: one database for the application, one for the queue');
const cluster = await startCluster({ major: 18 });
const admin = new pg.Client({ connectionString: cluster.connectionString() });
const provider = await RecordsProvider.start();
try {
  await admin.connect();
  await admin.query('CREATE DATABASE app');
  await admin.query('CREATE DATABASE queue');
  await tell();
  console.log('\nEverything was as it was told.');
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await provider.close();
  await admin.end();
  await cluster.remove();
}

async function tell(): Promise<void> {
  const app = await NestFactory.createApplicationContext(
    AppModule.with({
      databaseUrl: cluster.connectionString('app'),
      queueUrl: cluster.connectionString('queue'),
      providerUrl: provider.url,
    }),
    { logger: ['error', 'warn'] },
  );
  const records = app.get(RecordsSync);
  const sync = async (tenant: string): Promise<string> => {
    const result = await records.sync(tenant);
    say(`sync('${tenant}') → ${JSON.stringify(result)}`);
    return result.outcome;
  };
  const failed = async (tenant: string): Promise<unknown> => {
    const error = await records.sync(tenant).then(
      () => assert.fail('it should have failed'),
      (caught: unknown) => caught,
    );
    say(`sync('${tenant}') → ${error instanceof Error ? error.name : String(error)}`);
    return error;
  };

  try {
    title('The queue is down: no stamp, and the next call repairs');
    provider.has('seoul', 250);
    await queueIsDown();
    assert(await isTransient(failed('seoul')));
    assert.equal(await stamped('seoul'), false);
    say(`${await stored('seoul')} records are stored, the sentinel is not stamped`);
    await queueIsUp();
    assert.equal(await sync('seoul'), 'stamped');
    assert.equal(await jobs('seoul'), 250);
    const asked = provider.requests;
    assert.equal(await sync('seoul'), 'already-stamped');
    assert.equal(provider.requests, asked);
    say('250 jobs are in the queue, and the provider is not asked any more');

    title('20,000 records: more than one statement can carry');
    provider.has('busan', 20_000);
    assert.equal(await sync('busan'), 'stamped');
    assert.equal(await stored('busan'), 20_000);
    assert.equal(await jobs('busan'), 20_000);
    say('20,000 records in two statements, 20,000 jobs from twenty events');

    title('Two at once: one does it, the other is told');
    provider.has('daegu', 2_000);
    const outcomes = await Promise.all([sync('daegu'), sync('daegu')]);
    assert.deepEqual(outcomes.toSorted(), ['running-elsewhere', 'stamped']);

    title('The provider is down: transient as well');
    provider.isDown = true;
    provider.has('ulsan', 5);
    assert(await isTransient(failed('ulsan')));
    provider.isDown = false;
    assert.equal(await sync('ulsan'), 'stamped');

    title('A poison record: the gate closes, and the provider is left alone');
    provider.has('jeju', 10, { poisoned: true });
    const before = provider.requests;
    const poisoned = await failed('jeju');
    assert(poisoned instanceof DeterministicGateError && !(poisoned instanceof GateClosedError));
    for (let request = 1; request <= 100; request++) {
      const closed = await records.sync('jeju').catch((error: unknown) => error);
      assert(closed instanceof GateClosedError);
      if (request === 1) say(closed.message);
    }
    assert.equal(provider.requests, before + 1);
    say('100 further requests failed at once; the provider was asked once in all');
    provider.has('jeju', 10);
    await app.get(BootstrapPublisher).reopen('records:jeju');
    say("the record is mended, reopen('records:jeju')");
    assert.equal(await sync('jeju'), 'stamped');
    assert.equal(await jobs('jeju'), 10);
  } finally {
    await app.close();
  }
}

async function isTransient(failing: Promise<unknown>): Promise<boolean> {
  return (await failing) instanceof TransientGateError;
}

async function queueIsDown(): Promise<void> {
  await admin.query('ALTER DATABASE queue WITH ALLOW_CONNECTIONS false');
  await admin.query(
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = 'queue'",
  );
  say('the database of the queue takes no connections');
}

async function queueIsUp(): Promise<void> {
  await admin.query('ALTER DATABASE queue WITH ALLOW_CONNECTIONS true');
  say('the queue is back');
}

async function jobs(tenant: string): Promise<number> {
  return count('queue', "SELECT count(*) FROM pgboss.job WHERE data->>'recordId' LIKE $1", tenant);
}

async function stored(tenant: string): Promise<number> {
  return count('app', 'SELECT count(*) FROM records WHERE id LIKE $1', tenant);
}

async function stamped(tenant: string): Promise<boolean> {
  const text = `SELECT count(stamped_at) FROM outbox_sentinels WHERE key = 'records:' || rtrim($1, '-%')`;
  return (await count('app', text, tenant)) > 0;
}

async function count(database: string, text: string, tenant: string): Promise<number> {
  const client = new pg.Client({ connectionString: cluster.connectionString(database) });
  await client.connect();
  try {
    const { rows } = await client.query<{ count: string }>(text, [`${tenant}-%`]);
    return Number(rows[0]?.count);
  } finally {
    await client.end();
  }
}
