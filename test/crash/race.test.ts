import { describe, expect, it, jest } from '@jest/globals';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import { OutboxModule, OutboxService, type Delivered } from '../../src/index.js';
import type { TestDatabase } from '../support/database.js';
import { Rig } from './rig.js';

jest.setTimeout(120_000);

const TOTAL = 2_000;

describe('several relays on one table', () => {
  it.each([2, 4])(
    '%i processes deliver each of 2,000 events once, and nobody waits for a row of another',
    async (processes) => {
      await using rig = await Rig.open();
      const conflicts = await watchConflicts(rig.database);
      const apps = await Promise.all(
        Array.from({ length: processes }, (_, index) =>
          rig.start({ name: `app ${index}`, pool: 'own', quiet: true, relay: { batchSize: 50 } }),
        ),
      );
      await rig.store(
        Array.from({ length: TOTAL }, (_, n) => ({ n, act: 'sleep' as const, ms: n % 7 })),
      );
      await Promise.all(apps.map((app) => app.tick()));
      await rig.untilEvery('COMPLETED');

      expect(await calledOtherThanOnce(rig)).toEqual([]);
      const shares = await rig.database.query(
        `SELECT DISTINCT app FROM ledger WHERE point = 'finished'`,
      );
      expect(shares).toHaveLength(processes);
      expect(await conflicts()).toEqual([]);
    },
  );

  it('two applications in one process deliver each event once, each with listeners of its own', async () => {
    await using rig = await Rig.open();
    await using stack = new AsyncDisposableStack();
    const conflicts = await watchConflicts(rig.database);
    const applications = [];
    for (const name of ['first', 'second']) {
      const { module, delivered } = application(name, rig.database);
      const context = await NestFactory.createApplicationContext(module, { logger: false });
      stack.defer(() => context.close());
      applications.push({ outbox: context.get(OutboxService), delivered });
    }
    await rig.store(Array.from({ length: TOTAL }, (_, n) => ({ n })));
    await Promise.all(
      applications.map(async ({ outbox }) => {
        while ((await outbox.processPending()) > 0);
      }),
    );
    await rig.untilEvery('COMPLETED');

    const [first = [], second = []] = applications.map(({ delivered }) => delivered);
    expect(first.length).toBeGreaterThan(0);
    expect(second.length).toBeGreaterThan(0);
    expect([...first, ...second].toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: TOTAL }, (_, n) => n),
    );
    expect(await conflicts()).toEqual([]);
  });
});

async function calledOtherThanOnce(rig: Rig): Promise<unknown[]> {
  return rig.database.query(
    `SELECT outbox_events.id, count(ledger.n) AS calls
     FROM outbox_events LEFT JOIN ledger ON ledger.event = outbox_events.id AND ledger.point = 'started'
     GROUP BY outbox_events.id HAVING count(ledger.n) <> 1`,
  );
}

/**
 * From now on the server logs every wait for a lock that lasts longer than a millisecond. Answers those that concern
 * the outbox's rows, and the deadlocks. (That pg-boss makes its instances wait for each other is not ours, and waits
 * to enlarge a file are nobody's fault.)
 */
async function watchConflicts(database: TestDatabase): Promise<() => Promise<string[]>> {
  await database.query(`ALTER DATABASE ${database.name} SET log_lock_waits = on`);
  await database.query(`ALTER DATABASE ${database.name} SET deadlock_timeout = '1ms'`);
  const start = (await serverLog(database)).length;
  return async () =>
    logEntries((await serverLog(database)).slice(start)).filter((entry) =>
      /deadlock detected|waiting for \w+ on (transaction|tuple)[^]*outbox_/.test(entry),
    );
}

/** A message of the server with what it says of it in lines of its own: detail, context, statement. */
function logEntries(log: string): string[] {
  return log.split(/^(?=.* (?:LOG|WARNING|ERROR|FATAL|PANIC): )/m);
}

async function serverLog(database: TestDatabase): Promise<string> {
  const [row] = await database.query<{ log: string }>(`SELECT pg_read_file('server.log') AS log`);
  return row?.log ?? '';
}

function application(
  name: string,
  database: TestDatabase,
): { module: new () => object; delivered: number[] } {
  const delivered: number[] = [];

  @Injectable()
  class Worker {
    @OnEvent('work')
    work(event: Delivered): void {
      delivered.push(Number(event['n']));
    }
  }

  @Module({
    imports: [
      EventEmitterModule.forRoot(),
      OutboxModule.forRoot({
        connectionString: database.connectionString,
        relay: { batchSize: 50 },
      }),
    ],
    providers: [Worker],
  })
  class ApplicationModule {}

  Object.defineProperty(ApplicationModule, 'name', { value: `${name}Module` });
  return { module: ApplicationModule, delivered };
}
