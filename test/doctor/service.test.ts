import { expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import { OutboxDoctor, OutboxError, OutboxModule } from '../../src/index.js';
import { migrateOutbox } from '../../src/schema/migrate-outbox.js';
import { InMemoryOutboxStore } from '../../src/testing.js';
import { createDatabase } from '../support/database.js';
import { startApp } from '../support/outbox-app.js';
import { until } from '../support/until.js';

/** Each call another class of the same name, as when two files name theirs alike. */
function notifier(): new () => object {
  @Injectable()
  class Notifier {
    @OnEvent('a.b')
    on(): void {}
  }
  return Notifier;
}

it('finds nothing in an application that relays, and has looked everywhere', async () => {
  await using database = await createDatabase();
  await migrateOutbox({ database: database.pool });
  await using app = await startApp({
    outbox: { pool: database.pool, relay: { boss: undefined } as never },
    providers: [notifier()],
  });
  const doctor = app.module.get(OutboxDoctor);
  const { id } = await app.outbox.enqueue('a.b', {});
  await app.eventIn('COMPLETED', id);
  let examination = await doctor.examine();
  await until(async () => (examination = await doctor.examine()).checks.every(({ ran }) => ran), {
    what: 'every check can look',
    timeoutMs: 20_000,
  });
  // The tests' cluster is fast, and forgets what it has written when the machine crashes.
  expect(examination.findings.filter(({ check }) => check !== 'durability')).toEqual([]);
});

it('knows the listeners of its own process', async () => {
  await using database = await createDatabase();
  await migrateOutbox({ database: database.pool });
  await using app = await startApp({
    outbox: { pool: database.pool },
    providers: [notifier(), notifier()],
  });
  const { findings } = await app.module.get(OutboxDoctor).examine();
  expect(findings.filter(({ check }) => check === 'listener-names')).toMatchObject([
    { what: '2 listeners of "a.b" share the name Notifier.on' },
  ]);
});

it('says of a store in memory what it cannot see', async () => {
  await using app = await startApp({ outbox: { store: new InMemoryOutboxStore() } });
  const { findings, checks } = await app.module.get(OutboxDoctor).examine();
  expect(findings).toEqual([]);
  expect(checks.find(({ check }) => check === 'indexes')).toMatchObject({
    ran: false,
    remark: expect.stringMatching(/needs a PostgreSQL connection/),
  });
});

it('counts dead letters even where only the store can be asked', async () => {
  const store = new InMemoryOutboxStore();
  await store.enqueue([{ id: randomUUID(), eventType: 'a.b', payload: {}, metadata: {} }]);
  const [claimed] = await store.claim({ limit: 1, leaseMs: 1_000 });
  const failure = { retryCount: 5, lastError: 'why', acknowledgedBy: [] };
  await store.settle([{ ...claimed!, ...failure, outcome: 'failed' }]);
  await using app = await startApp({ outbox: { store } });
  expect((await app.module.get(OutboxDoctor).examine()).findings).toMatchObject([
    {
      check: 'dead-letters',
      what: '1 dead letter',
      fix: 'npx nestjs-outbox-relay dead-letters list',
    },
  ]);
});

it.each(['forRoot', 'forRootAsync'] as const)(
  'OutboxModule.%s without its options says what is missing',
  (method) => {
    const importing = () => (OutboxModule[method] as () => unknown)();
    expect(importing).toThrow(OutboxError);
    expect(importing).toThrow(
      new RegExp(`OutboxModule.${method}\\(…\\) needs its options, e.g. .*got undefined`),
    );
  },
);
