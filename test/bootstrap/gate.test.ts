import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  it,
  jest,
} from '@jest/globals';
import { OnEvent } from '@nestjs/event-emitter';
import {
  BootstrapPublisher,
  DeterministicGateError,
  GateClosedError,
  GateError,
  migrateOutbox,
  NonRetryableError,
  OutboxError,
  TransientGateError,
  type Gate,
  type GateRun,
  type OutboxModuleOptions,
} from '../../src/index.js';
import { InMemoryOutboxStore } from '../../src/testing.js';
import { createDatabase } from '../support/database.js';
import { startApp, type OutboxApp } from '../support/outbox-app.js';
import { shiftDate } from '../support/shifted-date.js';
import { describeOnSupabase } from '../support/supabase/projects.js';
import { deferred, until } from '../support/until.js';
import { openMemory, openPostgres, openSupabase, type Place } from './places.js';

const refused = (): Error => Object.assign(new Error('redis is down'), { code: 'ECONNREFUSED' });

/** The queue downstream, as the listener sees it. */
let enqueue: (ids: number[]) => unknown;
const queued: number[][] = [];

class SearchIndex {
  @OnEvent('record.bulk.upserted')
  async index({ ids }: { ids: number[] }): Promise<void> {
    await enqueue(ids);
    queued.push(ids);
  }
}

describe('a gate in memory', () => describeGate(openMemory));
describe('a gate in PostgreSQL 14', () => describeGate(() => openPostgres(14)));
describe('a gate in PostgreSQL 18', () => describeGate(() => openPostgres(18)));
describeOnSupabase('a gate in Supabase', (kind) => describeGate(() => openSupabase(kind)));

function describeGate(open: () => Promise<Place>): void {
  let place: Place;
  let app: OutboxApp;
  let publisher: BootstrapPublisher;
  let loads: number;
  let rows: number[];

  beforeAll(async () => {
    place = await open();
  });
  beforeEach(async () => {
    await place.empty();
    queued.length = 0;
    enqueue = () => {};
    loads = 0;
    rows = [1, 2, 3];
    await start();
  });
  afterEach(() => app.close());
  afterAll(async () => place[Symbol.asyncDispose]());

  async function start(options: Partial<OutboxModuleOptions> = {}): Promise<void> {
    app = await startApp({ outbox: { ...place.outbox(), ...options }, providers: [SearchIndex] });
    publisher = app.module.get(BootstrapPublisher);
  }

  const gate = (more: Partial<Gate<string, number>> = {}): Gate<string, number> => ({
    key: 'records:7',
    eventType: 'record.bulk.upserted',
    load: () => {
      loads++;
      return rows;
    },
    payload: (ids) => ({ ids }),
    whenEmpty: 'leave',
    ...more,
  });

  const failure = async (given = gate()): Promise<GateError> => {
    try {
      await publisher.run(given);
    } catch (error) {
      if (error instanceof GateError) return error;
      throw error;
    }
    throw new Error('the gate was passed');
  };
  const state = async () =>
    (await publisher.gates({ key: 'records:7' })).find(({ version }) => version === '1');

  describe('that is passed', () => {
    it('loads, publishes chunk by chunk, and stamps last', async () => {
      rows = [1, 2, 3, 4, 5];
      enqueue = async () => expect((await state())?.stampedAt).toBeNull();
      expect(await publisher.run(gate({ chunkSize: 2 }))).toEqual({ outcome: 'stamped', rows: 5 });
      expect(queued).toEqual([[1, 2], [3, 4], [5]]);
      expect((await state())?.stampedAt).toBeInstanceOf(Date);
      expect(app.log.messages('log').at(-1)).toBe(
        'gate "records:7" (version 1) is stamped: 5 row(s) published',
      );
    });

    it('does nothing when it is stamped, in a process that starts later too', async () => {
      await publisher.run(gate());
      expect(await publisher.run(gate())).toEqual({ outcome: 'already-stamped' });
      await app.close();
      await start();
      expect(await publisher.run(gate())).toEqual({ outcome: 'already-stamped' });
      expect(loads).toBe(1);
    });

    it('runs again for a new version, and keeps the stamp of the old one', async () => {
      await publisher.run(gate());
      expect(await publisher.run(gate({ version: 2 }))).toMatchObject({ outcome: 'stamped' });
      expect(await publisher.run(gate({ version: '2' }))).toEqual({ outcome: 'already-stamped' });
      expect(await publisher.run(gate())).toEqual({ outcome: 'already-stamped' });
      expect(loads).toBe(2);
    });

    it('keeps keys apart', async () => {
      await publisher.run(gate());
      expect(await publisher.run(gate({ key: 'records:8' }))).toMatchObject({ outcome: 'stamped' });
      expect(loads).toBe(2);
    });

    it('awaits each chunk before it publishes the next', async () => {
      const go = deferred();
      enqueue = () => go.promise;
      const running = publisher.run(gate({ chunkSize: 1 }));
      await until(() => loads === 1, { what: 'it has loaded' });
      await new Promise((resolve) => setImmediate(resolve));
      expect(queued).toEqual([]);
      go.resolve();
      await running;
      expect(queued).toEqual([[1], [2], [3]]);
    });
  });

  describe('without rows', () => {
    beforeEach(() => {
      rows = [];
    });

    it('with whenEmpty: stamp it is stamped, and nobody asks again', async () => {
      const given = gate({ whenEmpty: 'stamp' });
      expect(await publisher.run(given)).toEqual({ outcome: 'empty', stamped: true });
      expect(await publisher.run(given)).toEqual({ outcome: 'already-stamped' });
      expect(loads).toBe(1);
    });

    it('with whenEmpty: leave each call asks again, until there are rows', async () => {
      expect(await publisher.run(gate())).toEqual({ outcome: 'empty', stamped: false });
      rows = [1];
      expect(await publisher.run(gate())).toEqual({ outcome: 'stamped', rows: 1 });
      expect(loads).toBe(2);
    });

    it('publishes nothing, and demands that the choice is made', async () => {
      await publisher.run(gate());
      expect(queued).toEqual([]);
      await expect(publisher.run({ ...gate(), whenEmpty: undefined as never })).rejects.toThrow(
        "gate.whenEmpty must be 'stamp' (nothing there means done) or 'leave' (ask again each time), got undefined",
      );
    });
  });

  describe('whose listener fails', () => {
    it('is not stamped while the queue is down, and the next call repairs it', async () => {
      enqueue = () => Promise.reject(refused());
      const error = await failure();
      expect(error).toBeInstanceOf(TransientGateError);
      expect(error).toMatchObject({ code: 'GATE_TRANSIENT', key: 'records:7', failures: 1 });
      expect(error.message).toContain('SearchIndex.index: redis is down');
      expect(await state()).toMatchObject({ stampedAt: null, failures: 1 });
      enqueue = () => {};
      expect(await publisher.run(gate())).toMatchObject({ outcome: 'stamped' });
      expect(await state()).toMatchObject({ failures: 0, lastError: null, closings: 0 });
      expect(app.log.messages('log').at(-1)).toContain('is stamped after 1 failure');
    });

    it('is not stamped either when a later chunk fails, and repeats all of them', async () => {
      enqueue = (ids) => {
        if (ids[0] === 2 && loads === 1) throw refused();
      };
      await failure(gate({ chunkSize: 1 }));
      expect(queued).toEqual([[1]]);
      await publisher.run(gate({ chunkSize: 1 }));
      expect(queued).toEqual([[1], [1], [2], [3]]);
    });

    it('is not stamped when nobody listens', async () => {
      const error = await failure(gate({ eventType: 'nobody.listens' }));
      expect(error).toBeInstanceOf(TransientGateError);
      expect(error.message).toContain('nobody in this process listens to nobody.listens');
      expect((await state())?.stampedAt).toBeNull();
    });

    it('is neither begun nor counted while nobody listens: another process may have the listeners', async () => {
      for (let call = 0; call < 4; call++) await failure(gate({ eventType: 'nobody.listens' }));
      expect(loads).toBe(0);
      expect(await state()).toMatchObject({ failures: 0, closed: false, running: false });
    });

    it('counts what the work itself publishes to nobody: it was begun', async () => {
      const load = async (): Promise<number[]> => {
        await publisher.publishAsync('nobody.listens', {});
        return [1];
      };
      await failure(gate({ load }));
      expect(await state()).toMatchObject({ failures: 1, running: false });
    });

    it('keeps the original error, and the count, where closedForMs or backoffMs fails itself', async () => {
      const broken = (): never => {
        throw new Error('not this one');
      };
      const load = (): never => {
        throw new TypeError('the reason');
      };
      const error = await failure(gate({ load, closedForMs: broken, backoffMs: broken }));
      expect(error.message).toContain('the reason');
      expect(await state()).toMatchObject({ failures: 1, running: false });
    });

    it('keeps the original error', async () => {
      const original = refused();
      enqueue = () => Promise.reject(original);
      expect((await failure()).cause).toMatchObject({
        code: 'PUBLISH_FAILED',
        failures: [{ listener: 'SearchIndex.index', error: original }],
      });
    });
  });

  describe('that keeps failing', () => {
    beforeEach(() => {
      enqueue = () => Promise.reject(refused());
    });

    it('counts failures in a row, and the count survives restarts', async () => {
      await failure();
      await failure();
      await app.close();
      await start();
      expect(await failure()).toMatchObject({ failures: 3 });
      expect(await state()).toMatchObject({ failures: 3, lastErrorKind: 'transient' });
      expect((await app.outbox.stats()).gates).toEqual({ failing: 1, closed: 0 });
      expect(await publisher.stats()).toEqual({ failing: 1, closed: 0 });
    });

    it('is logged louder from the 3rd time on, and says what it means', async () => {
      for (let time = 1; time <= 4; time++) await failure();
      expect(app.log.messages('warn')).toHaveLength(2);
      expect(app.log.messages('warn')[1]).toContain('failed (2 in a row) and is not stamped');
      const errors = app.log.messages('error');
      expect(errors).toHaveLength(2);
      expect(errors[0]).toContain('has failed 3 times in a row: this is not a blip any more');
      expect(errors[0]).toContain('what its listeners feed stays empty or stale');
    });

    it('with alarmAfter: 1 is loud at once', async () => {
      await failure(gate({ alarmAfter: 1 }));
      expect(app.log.messages('error')).toHaveLength(1);
    });

    it('counts from the start when it is reopened while a run is at it', async () => {
      enqueue = () => Promise.reject(new Error('nobody knows why'));
      await failure();
      await failure();
      const load = async (): Promise<number[]> => {
        expect(await publisher.reopen(gate().key)).toBe(true);
        return [1];
      };
      await failure(gate({ load }));
      expect(await state()).toMatchObject({ closed: false, failures: 1 });
    });

    it('a transient one never closes, and is tried by every call', async () => {
      for (let time = 1; time <= 6; time++) await failure();
      expect(loads).toBe(6);
      expect(await state()).toMatchObject({ closed: false, failures: 6 });
    });
  });

  describe('that fails the same way each time', () => {
    const poison = new TypeError("Cannot read properties of undefined (reading 'id')");
    beforeEach(() => {
      enqueue = () => Promise.reject(poison);
    });

    it('closes, and then fails at once, with why and since when, before anything is loaded', async () => {
      const first = await failure();
      expect(first).toBeInstanceOf(DeterministicGateError);
      expect(first).not.toBeInstanceOf(GateClosedError);
      const second = (await failure()) as GateClosedError;
      expect(second).toBeInstanceOf(GateClosedError);
      expect(second).toBeInstanceOf(DeterministicGateError);
      expect(second).not.toBeInstanceOf(TransientGateError);
      expect(loads).toBe(1);
      expect(second).toMatchObject({ code: 'GATE_CLOSED', key: 'records:7', failures: 1 });
      expect(second.reason).toContain('SearchIndex.index: TypeError: Cannot read properties');
      expect(Number(second.until) - Number(second.since)).toBe(60_000);
      expect(second.message).toContain(`is closed since ${second.since.toISOString()}`);
      expect(second.message).toContain('call reopen("records:7")');
      expect((await app.outbox.stats()).gates).toEqual({ failing: 1, closed: 1 });
    });

    it('is logged as an error once, and not once per call', async () => {
      for (let time = 0; time < 5; time++) await failure();
      expect(app.log.messages('error')).toEqual([
        expect.stringContaining('is closed for 60 s: it has failed 1 time in a row, and this'),
      ]);
      expect(app.log.messages('warn')).toEqual([]);
    });

    it('stays closed in every process and after a restart', async () => {
      await failure();
      await app.close();
      await start();
      expect(await failure()).toBeInstanceOf(GateClosedError);
      expect(loads).toBe(1);
    });

    it('opens after its time, tries once, and closes for longer', async () => {
      await failure();
      await place.advance(60_001);
      expect(await failure()).not.toBeInstanceOf(GateClosedError);
      const closed = (await failure()) as GateClosedError;
      expect(closed.failures).toBe(2);
      // Since the first time; the second closing lasts two minutes.
      expect(Number(closed.until) - Number(closed.since)).toBeGreaterThanOrEqual(180_000);
      await place.advance(60_001);
      expect(await failure()).toBeInstanceOf(GateClosedError);
      expect(loads).toBe(2);
      await place.advance(60_001);
      enqueue = () => {};
      expect(await publisher.run(gate())).toMatchObject({ outcome: 'stamped' });
      expect(await state()).toMatchObject({ closedAt: null, closings: 0, failures: 0 });
    });

    it('opens by reopen at once, and counts from the start', async () => {
      await failure();
      expect(await publisher.reopen('records:7')).toBe(true);
      expect(await publisher.reopen('records:7')).toBe(false);
      enqueue = () => {};
      expect(await publisher.run(gate())).toMatchObject({ outcome: 'stamped' });
      expect(await publisher.reopen('nobody')).toBe(false);
    });

    it('does not close another key or version', async () => {
      await failure();
      enqueue = () => {};
      expect(await publisher.run(gate({ version: 2 }))).toMatchObject({ outcome: 'stamped' });
      expect(await publisher.run(gate({ key: 'records:8' }))).toMatchObject({ outcome: 'stamped' });
      expect(await failure()).toBeInstanceOf(GateClosedError);
    });

    it('closes for as long as closedForMs says', async () => {
      const given = gate({ closedForMs: (closings) => closings * 1_000 });
      await failure(given);
      await place.advance(1_001);
      await failure(given);
      await place.advance(1_001);
      expect(await failure(given)).toBeInstanceOf(GateClosedError);
      expect(loads).toBe(2);
    });
  });

  it('an unknown failure with the same message closes the gate the 3rd time', async () => {
    enqueue = () => Promise.reject(new Error('no luck'));
    expect(await failure()).toBeInstanceOf(TransientGateError);
    expect(await failure()).toBeInstanceOf(TransientGateError);
    expect(await failure()).toBeInstanceOf(DeterministicGateError);
    expect(await failure()).toBeInstanceOf(GateClosedError);
    expect(loads).toBe(3);
    expect(app.log.messages('error').at(-1)).toContain(
      'it has failed 3 times in a row, the last 3 with the same message',
    );
  });

  it('a classifier of the user’s decides', async () => {
    enqueue = () => Promise.reject(refused());
    const given = gate({ classify: () => 'deterministic' });
    expect(await failure(given)).toBeInstanceOf(DeterministicGateError);
    expect(await failure(given)).toBeInstanceOf(GateClosedError);
  });

  it('a listener that says "never retry this" closes the gate', async () => {
    enqueue = () => Promise.reject(new NonRetryableError('the schema of the index is wrong'));
    expect(await failure()).toBeInstanceOf(DeterministicGateError);
  });

  describe('whose load fails', () => {
    it.each<[string, () => never, typeof TransientGateError | typeof DeterministicGateError]>([
      [
        'HTTP 503',
        () => fail(Object.assign(new Error('503'), { status: 503 })),
        TransientGateError,
      ],
      ['a type error', () => fail(new TypeError('x')), DeterministicGateError],
      ['a wrong answer', () => ({ rows: [] }) as never, DeterministicGateError],
    ])('for %s, nothing is published and nothing stamped', async (_, load, type) => {
      const error = await failure(gate({ load }));
      expect(error).toBeInstanceOf(type);
      expect(queued).toEqual([]);
      expect(await state()).toMatchObject({ stampedAt: null, failures: 1 });
    });

    it('is bounded in time and told to stop', async () => {
      let signal: AbortSignal | undefined;
      const load = (run: GateRun): Promise<number[]> => {
        ({ signal } = run);
        return new Promise(() => {});
      };
      const error = await failure(gate({ load, timeoutMs: 20 }));
      expect(error).toBeInstanceOf(TransientGateError);
      expect(error.message).toContain('load timed out after 20 ms');
      expect(signal?.aborted).toBe(true);
    });

    it('a payload that cannot be published closes the gate', async () => {
      expect(await failure(gate({ payload: (ids) => ids as never }))).toBeInstanceOf(
        DeterministicGateError,
      );
    });
  });

  describe('that retries by itself', () => {
    it('tries again after a transient failure, and answers as if nothing had been', async () => {
      enqueue = () => {
        if (loads < 3) throw refused();
      };
      const waits: number[] = [];
      const backoffMs = (retry: number): number => {
        waits.push(retry);
        return 1;
      };
      expect(await publisher.run(gate({ retries: 2, backoffMs }))).toMatchObject({
        outcome: 'stamped',
      });
      expect(waits).toEqual([1, 2]);
      expect(loads).toBe(3);
    });

    it('not more often than it was told, and never after a deterministic one', async () => {
      enqueue = () => Promise.reject(refused());
      expect(await failure(gate({ retries: 2, backoffMs: () => 1 }))).toMatchObject({
        failures: 3,
      });
      expect(loads).toBe(3);
      enqueue = () => Promise.reject(new TypeError('x'));
      const error = await failure(gate({ retries: 2, backoffMs: () => 1 }));
      // A retry would have found the gate closed.
      expect(error).not.toBeInstanceOf(GateClosedError);
      expect(loads).toBe(4);
    });
  });

  describe('with a stamp of the application’s own', () => {
    let stamped: boolean;
    let asked: number;
    const own = (more: Partial<Gate<string, number>> = {}): Gate<string, number> =>
      gate({
        isStamped: () => {
          asked++;
          return stamped;
        },
        stamp: () => {
          stamped = true;
        },
        ...more,
      });
    beforeEach(() => {
      stamped = false;
      asked = 0;
    });

    it('asks and stamps there, last', async () => {
      enqueue = () => expect(stamped).toBe(false);
      expect(await publisher.run(own())).toEqual({ outcome: 'stamped', rows: 3 });
      expect(stamped).toBe(true);
      expect(await state()).toMatchObject({ stampedAt: null, running: false });
      expect(await publisher.run(own())).toEqual({ outcome: 'already-stamped' });
      expect(loads).toBe(1);
    });

    it('runs again when the application takes its stamp away', async () => {
      await publisher.run(own());
      stamped = false;
      expect(await publisher.run(own())).toMatchObject({ outcome: 'stamped' });
    });

    it('looks again once it has the lease: another run may have stamped meanwhile', async () => {
      const isStamped = (): boolean => asked++ > 0;
      expect(await publisher.run(own({ isStamped }))).toEqual({ outcome: 'already-stamped' });
      expect(loads).toBe(0);
      expect(await state()).toMatchObject({ running: false, failures: 0 });
    });

    it('is not stamped when a listener fails', async () => {
      enqueue = () => Promise.reject(refused());
      await failure(own());
      expect(stamped).toBe(false);
    });

    it('counts a stamp that fails, and repeats the work', async () => {
      const stamp = (): never => fail(refused());
      expect(await failure(own({ stamp }))).toBeInstanceOf(TransientGateError);
      expect(await publisher.run(own())).toMatchObject({ outcome: 'stamped' });
      expect(queued).toHaveLength(2);
    });

    it('tells an isStamped that fails in the same classes, and loads nothing', async () => {
      const error = await failure(own({ isStamped: () => fail(refused()) }));
      expect(error).toBeInstanceOf(TransientGateError);
      expect(error.message).toContain('could not be looked at: redis is down');
      expect(loads).toBe(0);
      expect(await failure(own({ isStamped: (() => 'yes') as never }))).toBeInstanceOf(
        DeterministicGateError,
      );
    });

    it('is refused with one half missing', async () => {
      for (const half of [{ stamp: undefined }, { isStamped: undefined }])
        await expect(publisher.run(own(half))).rejects.toThrow(
          'gate.stamp and gate.isStamped belong together',
        );
    });
  });

  describe('that somebody else is at', () => {
    it('answers so, and loads nothing', async () => {
      const go = deferred();
      enqueue = () => go.promise;
      const first = publisher.run(gate());
      await until(() => loads === 1, { what: 'the first is at it' });
      expect(await publisher.run(gate())).toEqual({ outcome: 'running-elsewhere' });
      expect(await publisher.run(gate({ version: 2 }))).toEqual({ outcome: 'running-elsewhere' });
      expect((await state())?.running).toBe(true);
      go.resolve();
      expect(await first).toMatchObject({ outcome: 'stamped' });
      expect(loads).toBe(1);
    });

    it('of twenty calls at once one does the work', async () => {
      const results = await Promise.all(Array.from({ length: 20 }, () => publisher.run(gate())));
      expect(results.filter(({ outcome }) => outcome === 'stamped')).toHaveLength(1);
      expect(loads).toBe(1);
      expect(queued).toHaveLength(1);
    });

    it('of twenty calls at once for five versions one is at it, and the others are told', async () => {
      const go = deferred();
      enqueue = () => go.promise;
      const told: string[] = [];
      const running = Array.from({ length: 20 }, async (_, n) => {
        const { outcome } = await publisher.run(gate({ version: n % 5 }));
        told.push(outcome);
      });
      await until(() => told.length === 19, { what: 'nineteen are told' });
      expect(new Set(told)).toEqual(new Set(['running-elsewhere']));
      go.resolve();
      await Promise.all(running);
      expect(loads).toBe(1);
    });

    it('a run whose lease was taken over changes nothing any more', async () => {
      const go = deferred();
      enqueue = () => go.promise;
      const first = failure();
      await until(() => loads === 1, { what: 'the first is at it' });
      await place.advance(30_001);
      enqueue = () => Promise.reject(refused());
      await failure();
      go.resolve();
      const late = await first;
      expect(late).toBeInstanceOf(TransientGateError);
      expect(late.message).toContain('the lease of gate "records:7" was lost');
      // The lost lease counted once, the second run once.
      expect(await state()).toMatchObject({ stampedAt: null, failures: 2 });
    });

    it('a run that died over it counts as a failure, and its work is repeated', async () => {
      await app.close();
      await start({ relay: { shutdownTimeoutMs: 10 } });
      enqueue = () => new Promise(() => {});
      const hung = publisher.run(gate()).catch(() => {});
      await until(() => loads === 1, { what: 'it is at it' });
      await place.advance(30_001);
      enqueue = () => {};
      expect(await publisher.run(gate())).toMatchObject({ outcome: 'stamped' });
      expect(app.log.messages('warn').join()).toContain(
        'failed (1 in a row) and is not stamped, the next call tries again: the process that was at it died',
      );
      await app.close();
      await hung;
      await start();
    });

    it('work that kills its process three times over closes the gate', async () => {
      await app.close();
      await start({ relay: { shutdownTimeoutMs: 10 } });
      enqueue = () => new Promise(() => {});
      const hung: Promise<unknown>[] = [];
      for (let time = 1; time <= 3; time++) {
        hung.push(publisher.run(gate()).catch(() => {}));
        await until(() => loads === time, { what: `run ${time} is at it` });
        await place.advance(30_001);
      }
      expect(await failure()).toBeInstanceOf(DeterministicGateError);
      expect(await failure()).toBeInstanceOf(GateClosedError);
      expect(loads).toBe(3);
      await app.close();
      await Promise.all(hung);
      await start();
    });

    it('renews its lease for as long as it is at work', async () => {
      const go = deferred();
      enqueue = () => go.promise;
      const running = publisher.run(gate({ leaseMs: 1_000 }));
      await until(() => loads === 1, { what: 'it is at it' });
      const startedAt = performance.now();
      await until(() => performance.now() - startedAt > 1_500, { what: 'the lease would be over' });
      expect(await publisher.run(gate())).toEqual({ outcome: 'running-elsewhere' });
      go.resolve();
      expect(await running).toMatchObject({ outcome: 'stamped' });
    });
  });

  describe('at a shutdown', () => {
    it('refuses, and what is under way is finished and stamped', async () => {
      const go = deferred();
      enqueue = () => go.promise;
      const running = publisher.run(gate());
      await until(() => loads === 1, { what: 'it is at it' });
      const closing = app.close();
      await until(
        () =>
          publisher.run(gate()).then(
            () => false,
            (error: unknown) => error instanceof OutboxError && error.code === 'SHUTTING_DOWN',
          ),
        { what: 'it refuses' },
      );
      go.resolve();
      expect(await running).toMatchObject({ outcome: 'stamped' });
      await closing;
      await start();
    });

    it('what cannot be finished is given back at once, without counting a failure', async () => {
      await app.close();
      await start({ relay: { shutdownTimeoutMs: 10 } });
      enqueue = () => new Promise(() => {});
      const running = publisher.run(gate());
      const rejected = expect(running).rejects.toMatchObject({ code: 'SHUTTING_DOWN' });
      await until(() => loads === 1, { what: 'it is at it' });
      await app.close();
      await rejected;
      await start();
      expect(await state()).toMatchObject({ failures: 0, running: false, stampedAt: null });
      enqueue = () => {};
      expect(await publisher.run(gate())).toMatchObject({ outcome: 'stamped' });
    });

    it('the next chunk is not begun', async () => {
      const go = deferred();
      enqueue = () => go.promise;
      const running = publisher.run(gate({ chunkSize: 1 }));
      const rejected = expect(running).rejects.toMatchObject({ code: 'SHUTTING_DOWN' });
      await until(() => loads === 1, { what: 'it is at it' });
      const closing = app.close();
      go.resolve();
      await rejected;
      await closing;
      expect(queued.length).toBeLessThan(3);
      await start();
      expect(await state()).toMatchObject({ failures: 0, running: false });
    });
  });

  it('lists gates: those that failed last come first, and only those if asked', async () => {
    await publisher.run(gate({ key: 'good' }));
    enqueue = () => Promise.reject(new TypeError('x'));
    await failure(gate({ key: 'bad' }));
    expect((await publisher.gates()).map(({ key }) => key)).toEqual(['bad', 'good']);
    expect(await publisher.gates({ failing: true })).toMatchObject([
      { key: 'bad', version: '1', closed: true, running: false, lastErrorKind: 'deterministic' },
    ]);
    expect(await publisher.gates({ limit: 1 })).toHaveLength(1);
    await expect(publisher.gates({ limit: 0 })).rejects.toThrow('limit must be a whole number');
    await expect(publisher.gates({ failling: true } as never)).rejects.toThrow(
      'did you mean failing?',
    );
  });

  it.each<[string, object, string]>([
    ['no key', { key: undefined }, 'gate.key must be a name of 1 to 255 characters'],
    ['an empty key', { key: ' ' }, 'gate.key must be a name'],
    ['a long key', { key: 'x'.repeat(256) }, 'gate.key must be a name'],
    ['a key with NUL', { key: 'a\0' }, 'gate.key must be a name'],
    ['an empty version', { version: '' }, 'gate.version must be a number or a name'],
    ['NaN as version', { version: Number.NaN }, 'gate.version must be a number or a name'],
    ['no load', { load: undefined }, 'gate.load must be a function, got undefined'],
    ['no payload', { payload: 1 }, 'gate.payload must be a function, got 1'],
    ['no rows per chunk', { chunkSize: 0 }, 'gate.chunkSize must be a whole number from 1 to'],
    ['endless retries', { retries: 21 }, 'gate.retries must be a whole number from 0 to 20'],
    ['a lease too short', { leaseMs: 10 }, 'gate.leaseMs must be a whole number from 1000'],
    ['a misspelled option', { chunksize: 1 }, 'unknown option gate.chunksize: did you mean'],
    ['the emitter’s own type', { eventType: 'error' }, 'has a meaning of its own'],
  ])('refuses %s, before anything is asked', async (_, wrong, message) => {
    await expect(publisher.run({ ...gate(), ...wrong } as never)).rejects.toThrow(message);
    await expect(publisher.run({ ...gate(), ...wrong } as never)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    });
    expect(await publisher.gates()).toEqual([]);
  });
}

function fail(error: Error): never {
  throw error;
}

describe('a gate in PostgreSQL', () => {
  it('holds no transaction and no connection while listeners work', async () => {
    await using database = await createDatabase();
    await migrateOutbox({ database: database.pool });
    await using app = await startApp({
      outbox: { connectionString: database.connectionString },
      providers: [SearchIndex],
    });
    let sessions: object[] = [];
    enqueue = async () => {
      sessions = await database.query(
        `SELECT state, query FROM pg_stat_activity
         WHERE datname = $1 AND backend_type = 'client backend' AND pid <> pg_backend_pid()
           AND (state <> 'idle' OR backend_xid IS NOT NULL)`,
        [database.name],
      );
    };
    const result = await app.module.get(BootstrapPublisher).run({
      key: 'k',
      eventType: 'record.bulk.upserted',
      load: () => [1],
      payload: (ids) => ({ ids: ids as number[] }),
      whenEmpty: 'leave',
    });
    expect(result.outcome).toBe('stamped');
    expect(sessions).toEqual([]);
    enqueue = () => {};
    await app.close();
  });

  it('that cannot be reached is transient, nothing is loaded, and nothing waits for ever', async () => {
    const database = await createDatabase();
    await migrateOutbox({ database: database.pool });
    await using app = await startApp({
      outbox: { connectionString: database.connectionString },
      providers: [SearchIndex],
    });
    await database.terminateBackends();
    await database.drop().catch(() => {});
    let loads = 0;
    const run = app.module.get(BootstrapPublisher).run({
      key: 'k',
      eventType: 'record.bulk.upserted',
      load: () => [loads++],
      payload: (ids) => ({ ids }),
      whenEmpty: 'leave',
      classify: (error) =>
        (error as { code?: string }).code === '3D000' ? 'transient' : undefined,
    });
    await expect(run).rejects.toBeInstanceOf(TransientGateError);
    expect(loads).toBe(0);
  });

  it.each([-5, 5])(
    'goes by the database’s clock, with an application’s that is wrong by %i hours',
    async (hours) => {
      await using database = await createDatabase();
      await migrateOutbox({ database: database.pool });
      await using app = await startApp({
        outbox: { pool: database.pool },
        providers: [SearchIndex],
      });
      const publisher = app.module.get(BootstrapPublisher);
      const gate: Gate<string, number> = {
        key: 'k',
        eventType: 'record.bulk.upserted',
        load: () => [1],
        payload: (ids) => ({ ids }),
        whenEmpty: 'leave',
      };
      shiftDate(Date.now() + hours * 3_600_000);
      try {
        const go = deferred();
        let called = false;
        enqueue = async () => {
          called = true;
          await go.promise;
          throw new TypeError('x');
        };
        const first = publisher.run(gate).catch((error: unknown) => error);
        await until(() => called, { what: 'the first is at it' });
        expect(await publisher.run(gate)).toEqual({ outcome: 'running-elsewhere' });
        go.resolve();
        expect(await first).toBeInstanceOf(DeterministicGateError);
        await expect(publisher.run(gate)).rejects.toBeInstanceOf(GateClosedError);
        await database.query(`UPDATE outbox_sentinels SET closed_until = now() - interval '1 ms'`);
        enqueue = () => {};
        expect(await publisher.run(gate)).toMatchObject({ outcome: 'stamped' });
      } finally {
        jest.useRealTimers();
      }
      await app.close();
    },
  );

  it('lies in the schema and under the name that were configured', async () => {
    await using database = await createDatabase(14);
    const names = { schema: 'billing', table: 'paid_events' };
    await migrateOutbox({ database: database.pool, ...names });
    await using app = await startApp({
      outbox: { pool: database.pool, ...names },
      providers: [SearchIndex],
    });
    enqueue = () => {};
    await app.module.get(BootstrapPublisher).run({
      key: 'k',
      eventType: 'record.bulk.upserted',
      load: () => [1],
      payload: (ids) => ({ ids }),
      whenEmpty: 'leave',
    });
    expect(await database.query('SELECT key FROM billing.paid_sentinels')).toEqual([{ key: 'k' }]);
    await app.close();
  });
});

it('a store of the application’s own without sentinels is told what it lacks, and publishes all the same', async () => {
  class Bare extends InMemoryOutboxStore {
    override readonly sentinels = undefined as never;
  }
  await using app = await startApp({ outbox: { store: new Bare() }, providers: [SearchIndex] });
  enqueue = () => {};
  const publisher = app.module.get(BootstrapPublisher);
  const gate: Gate<string, number> = {
    key: 'k',
    eventType: 'record.bulk.upserted',
    load: () => [1],
    payload: (ids) => ({ ids }),
    whenEmpty: 'leave',
  };
  for (const call of [publisher.run(gate), publisher.gates(), publisher.reopen('k')])
    await expect(call).rejects.toMatchObject({
      code: 'SETUP',
      message: expect.stringContaining('gates need a place for their sentinels'),
    });
  await publisher.publishAsync('record.bulk.upserted', { ids: [1] });
  expect((await app.outbox.stats()).gates).toEqual({ failing: 0, closed: 0 });
});
