import { describe, expect, it, jest } from '@jest/globals';
import { startTcpProxy } from '../support/tcp-proxy.js';
import { until } from '../support/until.js';
import { Rig } from './rig.js';

jest.setTimeout(120_000);

// What is waited for here ends after 15 or 30 seconds (pg-pool.ts), the pool's connect after 10.
const WAIT_ENDS_MS = 45_000;

describe('a network that swallows everything', () => {
  it('ends every wait, and when it works again the same processes go on', async () => {
    await using rig = await Rig.open();
    await using proxy = await startTcpProxy(rig.database.connectionString);
    const behind = {
      database: proxy.connectionString,
      ledger: rig.database.connectionString,
    };
    // The application's own pool knows no limits at all: node-postgres's default. Alone at first: nobody else is to
    // take its event.
    const lent = await rig.start({
      ...behind,
      name: 'lent',
      boss: 'hand',
      pool: 'app',
      hold: { listener: 0 },
    });
    await rig.store([{ n: 1 }]);
    await lent.tick();
    await lent.at('listener');

    const [relay, producer, lentProducer, leaving] = await Promise.all([
      rig.start({ ...behind, name: 'relay', boss: 'own', pool: 'own' }),
      rig.start({ ...behind, name: 'producer', relay: false, pool: 'own' }),
      rig.start({ ...behind, name: 'lent producer', relay: false, pool: 'app' }),
      rig.start({ ...behind, name: 'leaving', boss: 'hand', pool: 'own' }),
    ]);

    proxy.halfOpen();
    producer.tell({ do: 'enqueue', work: [{ n: 2 }] });
    lentProducer.tell({ do: 'enqueue', work: [{ n: 3 }] });
    leaving.child.kill('SIGTERM').catch(() => {});
    const left = performance.now();
    // The listener succeeds, and its outcome goes nowhere.
    lent.tell({ do: 'go', point: 'listener' });

    await Promise.all([
      (async () => {
        expect(await leaving.child.exited).toEqual({ code: null, signal: 'SIGTERM' });
        expect(performance.now() - left).toBeLessThan(20_000);
      })(),
      (async () => {
        for (const app of [producer, lentProducer]) {
          const enqueued = await app.child.message('enqueued', { timeoutMs: WAIT_ENDS_MS });
          expect(enqueued).toMatchObject({ stored: [false] });
          await app.child.message('emitted');
        }
      })(),
      lent.child.line(/store fails, events wait/, { timeoutMs: WAIT_ENDS_MS }),
    ]);

    await proxy.restore();
    await until(async () => (await rig.events()).find(({ n }) => n === 1)?.status === 'COMPLETED', {
      what: 'the outcome of the first is stored',
      timeoutMs: WAIT_ENDS_MS,
    });
    expect((await rig.calls()).get(1)).toBe(1);

    // Nobody tells the relay: its own tick comes.
    await rig.store([{ n: 4 }]);
    await until(async () => (await rig.events()).find(({ n }) => n === 4)?.status === 'COMPLETED', {
      what: 'a tick has come',
      timeoutMs: 70_000,
    });
    for (const app of [producer, lentProducer]) {
      app.tell({ do: 'enqueue', work: [{ n: 5 }] });
      expect(await app.child.message('enqueued')).toMatchObject({ stored: [true] });
    }
    await rig.untilEvery('COMPLETED');
    for (const { child } of [relay, lent, producer, lentProducer])
      expect(await Promise.race([child.exited, Promise.resolve('runs')])).toBe('runs');
  }, 150_000);
});
