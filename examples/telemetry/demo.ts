/**
 * npm run example:telemetry    tells the story; exit status 0 only if everything was as it is told
 */
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { SpanKind, trace } from '@opentelemetry/api';
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { OutboxService, type OutboxServiceStats } from 'nestjs-outbox-relay';
import { freePort } from '../../tools/free-port.ts';
import { startCluster } from '../../tools/postgres-cluster.ts';
import { AppModule } from './app.module.js';
import { QuotesService } from './quotes.service.js';
import { startTelemetry } from './telemetry.js';

const title = (text: string): void => console.log(`\n── ${text}`);

console.log('starting a PostgreSQL of its own');
const cluster = await startCluster({ major: 18 });
const port = await freePort();
// First of all: the outbox looks for it while Nest makes the application.
const { sdk, traces } = startTelemetry(port);
try {
  await tell();
  console.log('\nEverything was as it was told.');
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await sdk.shutdown();
  await cluster.remove();
}

async function tell(): Promise<void> {
  const app = await NestFactory.createApplicationContext(
    AppModule.with(cluster.connectionString()),
    { logger: ['error'] },
  );
  try {
    const quotes = app.get(QuotesService);
    title('Two requests; a gateway fails once, a listener gives up');
    await request('POST /quotes', () => quotes.create('q-1'));
    await request('DELETE /quotes/q-1', () => quotes.cancel('q-1'));
    await until(app.get(OutboxService), ({ due, scheduled, processing, failed }) => {
      return due + scheduled + processing === 0 && failed === 1;
    });

    title('Their traces, from the request to the notification');
    const tree = traces.below(undefined);
    console.log(tree.join('\n'));
    assert.equal(tree.filter((line) => !line.startsWith(' ')).length, 2);
    assert.equal(tree.filter((line) => line.includes('deliver quote.created')).length, 3);
    assert.equal(tree.filter((line) => line.includes('✗')).length, 2);

    title(`What Prometheus reads at http://127.0.0.1:${port}/metrics`);
    const lines = (await scrape()).filter(
      (line) => /^(outbox|messaging)_/.test(line) && !line.includes('_bucket{'),
    );
    console.log(lines.map(shortened).join('\n'));
    assert.equal(valueOf(lines, 'outbox_events_dead'), 1);
    assert.equal(valueOf(lines, 'outbox_relay_alive'), 1);
  } finally {
    await app.close();
  }
}

/** What an HTTP instrumentation does (`@opentelemetry/instrumentation-http`). */
async function request(name: string, work: () => Promise<void>): Promise<void> {
  await trace.getTracer('http').startActiveSpan(name, { kind: SpanKind.SERVER }, async (span) => {
    await work();
    span.end();
  });
}

async function until(
  outbox: OutboxService,
  isDone: (stats: OutboxServiceStats) => boolean,
): Promise<void> {
  const end = performance.now() + 20_000;
  while (!isDone(await outbox.stats())) {
    assert(performance.now() < end, 'the events were not delivered in time');
    await sleep(50);
  }
}

async function scrape(): Promise<string[]> {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`);
  return (await response.text()).split('\n');
}

function valueOf(lines: readonly string[], metric: string): number {
  const line = lines.find((text) => text.startsWith(`${metric}{`));
  assert(line !== undefined, `${metric} is missing`);
  return Number(line.slice(line.lastIndexOf(' ')));
}

/** Without what is the same in every line. */
function shortened(line: string): string {
  return line.replaceAll(
    /(,?)(otel_scope_\w+|messaging_system|outbox_table)="[^"]*"(,?)/g,
    (_label, before: string, _name: string, after: string) => before && after,
  );
}
