import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { migrateOutbox, OutboxHealth, type OutboxModuleOptions } from '../../src/index.js';
import { OutboxHealthIndicator } from '../../src/outbox.terminus.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { startApp, type OutboxApp } from '../support/outbox-app.js';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.js';
import { until } from '../support/until.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase();
  await migrateOutbox({ database: database.pool });
});
beforeEach(() => database.query('TRUNCATE outbox_events'));
afterAll(() => database.drop());

async function start(
  options: Partial<OutboxModuleOptions> = {},
): Promise<OutboxApp & { health: OutboxHealth }> {
  const app = await startApp({
    outbox: {
      ...(options.connectionString === undefined && { pool: database.pool }),
      ...options,
    },
    imports: [TerminusModule.forRoot({ logger: false })],
    providers: [OutboxHealthIndicator],
  });
  return Object.assign(app, { health: app.module.get(OutboxHealth) });
}

const dueFor = (minutes: number) =>
  database.query(
    `INSERT INTO outbox_events (event_type, payload, scheduled_at)
     VALUES ('a', '{}', now() - $1 * interval '1 minute')`,
    [minutes],
  );
const dead = () =>
  database.query(
    `INSERT INTO outbox_events (event_type, payload, status, processed_at)
     VALUES ('a', '{}', 'FAILED', now())`,
  );

describe('health', () => {
  it('is up in a process that does not relay, with what there is to know', async () => {
    await using app = await start();
    await dueFor(1);
    await dead();
    expect(await app.health.check()).toEqual({
      status: 'up',
      reasons: [],
      relay: 'off',
      database: 'up',
      due: 1,
      oldestDueAgeMs: expect.any(Number),
      deadLetters: 1,
    });
  });

  it('is up once the relay has started, and down again while it stops', async () => {
    const app = await start({ relay: {} });
    await until(async () => (await app.health.check()).status === 'up', { what: 'it is up' });
    expect(await app.health.check()).toMatchObject({ relay: 'relaying' });
    await app.close();
    expect(await app.health.check()).toMatchObject({
      status: 'down',
      relay: 'stopping',
      reasons: expect.arrayContaining(['the relay of this process stops']),
    });
  });

  it('is down from the age of the oldest due event that was said on', async () => {
    await using app = await start();
    await dueFor(6);
    expect(await app.health.check()).toMatchObject({
      status: 'down',
      reasons: [
        expect.stringMatching(/^the oldest due event has waited for 36\d{4} ms, more than 300000$/),
      ],
    });
    expect(await app.health.check({ oldestDueAgeMs: 600_000 })).toMatchObject({ status: 'up' });
    expect(await app.health.check({ oldestDueAgeMs: false })).toMatchObject({ status: 'up' });
  });

  it('is down from the number of dead letters that was said on, and else not for any', async () => {
    await using app = await start();
    await dead();
    expect(await app.health.check()).toMatchObject({ status: 'up', deadLetters: 1 });
    expect(await app.health.check({ deadLetters: 1 })).toMatchObject({ status: 'up' });
    expect(await app.health.check({ deadLetters: 0 })).toMatchObject({
      status: 'down',
      reasons: ['dead letters: 1, more than 0'],
    });
  });

  it.each([
    [
      'refuses connections',
      (proxy: TcpProxy) => {
        proxy.refuse();
        proxy.dropAll();
      },
    ],
    ['does not answer', (proxy: TcpProxy) => proxy.halfOpen()],
  ] as const)('is down when the database %s, and says so in time', async (_, harm) => {
    await using proxy = await startTcpProxy(database.connectionString);
    await using app = await start({ connectionString: proxy.connectionString });
    expect(await app.health.check()).toMatchObject({ status: 'up' });
    harm(proxy);
    const startedAt = performance.now();
    expect(await app.health.check({ timeoutMs: 500 })).toEqual({
      status: 'down',
      reasons: [expect.stringMatching(/^the database does not answer: ./)],
      relay: 'off',
      database: 'down',
      due: null,
      oldestDueAgeMs: null,
      deadLetters: null,
    });
    expect(performance.now() - startedAt).toBeLessThan(3_000);
  });

  it.each([
    [{ oldestDueAgeMs: -1 }, 'oldestDueAgeMs must be a number, 0 or more, got -1'],
    [{ deadLetters: '1' }, 'deadLetters must be a number'],
    [{ timeoutMs: Infinity }, 'timeoutMs must be a number, 1 to 600000, got Infinity'],
    [null, 'options must be an object'],
    [{ timeoutMs: 0 }, 'timeoutMs must be a number, 1 to 600000, got 0'],
    [{ deadLetter: 1 }, 'did you mean deadLetters?'],
  ])('refuses the thresholds %p', async (thresholds, message) => {
    await using app = await start();
    await expect(app.health.check(thresholds as never)).rejects.toThrow(message);
  });
});

describe('with Terminus', () => {
  it('a health check is ok, and an error with the reasons when the outbox is not well', async () => {
    await using app = await start();
    const indicator = app.module.get(OutboxHealthIndicator);
    const terminus = app.module.get(HealthCheckService);
    const check = () => terminus.check([() => indicator.isHealthy('outbox', { deadLetters: 0 })]);
    expect(await check()).toMatchObject({
      status: 'ok',
      details: { outbox: { status: 'up', deadLetters: 0 } },
    });
    await dead();
    await expect(check()).rejects.toMatchObject({
      response: {
        status: 'error',
        error: {
          outbox: { status: 'down', reasons: ['dead letters: 1, more than 0'] },
        },
      },
    });
  });
});
