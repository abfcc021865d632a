import { describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Conveyor, type ConveyorEnds, type Finished } from '../../src/relay/conveyor.js';
import type { ClaimedEvent, Settlement } from '../../src/store/outbox-store.js';
import { deferred, until, type Deferred } from '../support/until.js';

function event(eventType = 'x'): ClaimedEvent {
  const now = new Date(0);
  return {
    id: randomUUID(),
    leaseToken: randomUUID(),
    eventType,
    payload: {},
    metadata: {},
    retryCount: 0,
    acknowledgedBy: [],
    scheduledAt: now,
    createdAt: now,
    unheardSince: null,
    claimedAt: now,
  };
}

const events = (count: number): ClaimedEvent[] => Array.from({ length: count }, () => event());

/** The ends of a conveyor, where every statement and every delivery ends when the test says so. */
class Ends implements ConveyorEnds {
  readonly exchanges: {
    finished: readonly Finished[];
    limit: number;
    answer: Deferred<ClaimedEvent[]>;
  }[] = [];
  readonly deliveries = new Map<ClaimedEvent, Deferred<Settlement | undefined>>();
  readonly failures: unknown[] = [];
  others: ClaimedEvent[] = [];
  underWay = 0;
  most = 0;

  async exchange(finished: readonly Finished[], limit: number): Promise<ClaimedEvent[]> {
    const answer = deferred<ClaimedEvent[]>();
    this.exchanges.push({ finished, limit, answer });
    return answer.promise;
  }

  async claimOthers(): Promise<ClaimedEvent[]> {
    return this.others.splice(0);
  }

  async handle(claimed: ClaimedEvent): Promise<Settlement | undefined> {
    const delivery = deferred<Settlement | undefined>();
    this.deliveries.set(claimed, delivery);
    this.most = Math.max(this.most, ++this.underWay);
    return delivery.promise.finally(() => this.underWay--);
  }

  failed(error: unknown): number {
    this.failures.push(error);
    return 20;
  }

  /** These have been delivered. */
  async finish(...claimed: readonly ClaimedEvent[]): Promise<void> {
    for (const one of claimed) {
      const { id, leaseToken } = one;
      this.deliveries.get(one)?.resolve({ id, leaseToken, outcome: 'completed' });
    }
    await turns();
  }

  async answer(index: number, claimed: readonly ClaimedEvent[]): Promise<void> {
    this.exchanges[index]?.answer.resolve([...claimed]);
    await turns();
  }

  ids(index: number): string[] {
    return this.exchanges[index]?.finished.map(({ event: { id } }) => id) ?? [];
  }
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await nextTurn();
}

const SETTINGS = { batchSize: 10, concurrency: 2 };

describe('a conveyor', () => {
  it('that is fed again and again while a claim is under way sends no second one, and looks once more afterwards', async () => {
    const ends = new Ends();
    const conveyor = new Conveyor(ends, SETTINGS);
    for (let time = 0; time < 100; time++) conveyor.feed();
    expect(ends.exchanges).toHaveLength(1);
    await ends.answer(0, []);
    expect(ends.exchanges).toHaveLength(2);
    await ends.answer(1, []);
    expect(ends.exchanges).toHaveLength(2);
    await conveyor.idle();
  });

  it('never delivers more events at a time than it has places, and fills a place the moment it is free', async () => {
    const ends = new Ends();
    const conveyor = new Conveyor(ends, SETTINGS);
    const claimed = events(5);
    conveyor.feed();
    await ends.answer(0, claimed);
    expect([...ends.deliveries.keys()]).toEqual(claimed.slice(0, 2));
    const [slow, quick, next] = claimed;
    await ends.finish(quick as ClaimedEvent);
    expect([...ends.deliveries.keys()]).toEqual(claimed.slice(0, 3));
    await ends.finish(next as ClaimedEvent);
    expect(ends.deliveries.size).toBe(4);
    await ends.finish(...claimed.slice(3));
    await ends.finish(slow as ClaimedEvent);
    expect(ends.most).toBe(2);
  });

  it('settles together what finishes together, and while a statement is under way, what finishes meanwhile', async () => {
    const ends = new Ends();
    const conveyor = new Conveyor(ends, { batchSize: 10, concurrency: 10 });
    const claimed = events(9);
    conveyor.take(claimed);
    await ends.finish(...claimed.slice(0, 3));
    expect(ends.exchanges).toHaveLength(1);
    expect(ends.ids(0)).toEqual(claimed.slice(0, 3).map(({ id }) => id));
    // A second statement may be under way as well, a third may not.
    await ends.finish(...claimed.slice(3, 5));
    await ends.finish(...claimed.slice(5, 7));
    await ends.finish(...claimed.slice(7, 9));
    expect(ends.exchanges).toHaveLength(2);
    await ends.answer(0, []);
    expect(ends.exchanges).toHaveLength(3);
    expect(ends.ids(2)).toEqual(claimed.slice(5).map(({ id }) => id));
    await ends.answer(1, []);
    await ends.answer(2, []);
    await conveyor.idle();
  });

  it('repeats what the store did not take, together with what came since, after the wait it is told', async () => {
    const ends = new Ends();
    const conveyor = new Conveyor(ends, { batchSize: 10, concurrency: 10 });
    const [first, second] = events(2) as [ClaimedEvent, ClaimedEvent];
    conveyor.take([first, second]);
    await ends.finish(first);
    ends.exchanges[0]?.answer.reject(new Error('no connection'));
    await ends.finish(second);
    expect(ends.failures).toHaveLength(1);
    expect(ends.exchanges).toHaveLength(1);
    await until(() => ends.exchanges.length === 2, { what: 'it has tried again' });
    expect(ends.ids(1)).toEqual([first.id, second.id]);
    await ends.answer(1, []);
    await conveyor.idle();
    expect(ends.exchanges).toHaveLength(2);
  });

  it('remembers that something may be due when the claim failed', async () => {
    const ends = new Ends();
    const conveyor = new Conveyor(ends, SETTINGS);
    conveyor.feed();
    ends.exchanges[0]?.answer.reject(new Error('no connection'));
    await until(() => ends.exchanges.length === 2, { what: 'it has tried again' });
    expect(ends.exchanges[1]?.limit).toBe(10);
    await ends.answer(1, []);
    await conveyor.idle();
  });

  it('claims the next batch when the last was full, and not before a place is free', async () => {
    const ends = new Ends();
    const conveyor = new Conveyor(ends, { batchSize: 2, concurrency: 2 });
    const [first, second] = [events(2), events(1)];
    conveyor.feed();
    await ends.answer(0, first);
    expect(ends.exchanges).toHaveLength(1);
    await ends.finish(...first);
    expect(ends.exchanges[1]).toMatchObject({ limit: 2 });
    expect(ends.ids(1)).toEqual(first.map(({ id }) => id));
    await ends.answer(1, second);
    await ends.finish(...second);
    for (let index = 2; index < ends.exchanges.length; index++) await ends.answer(index, []);
    await conveyor.idle();
  });

  it('that is stopped handles at once what waits for a place, and claims nothing more', async () => {
    const ends = new Ends();
    const conveyor = new Conveyor(ends, SETTINGS);
    const claimed = events(4);
    conveyor.feed();
    await ends.answer(0, claimed);
    expect(ends.deliveries.size).toBe(2);
    conveyor.stop();
    conveyor.feed();
    await turns();
    expect(ends.deliveries.size).toBe(4);
    await ends.finish(...claimed);
    expect(ends.exchanges.map(({ limit }) => limit)).toEqual([10, 0]);
    await ends.answer(1, []);
    await conveyor.idle();
  });

  it('that is stopped handles what a claim under way still brings', async () => {
    const ends = new Ends();
    const conveyor = new Conveyor(ends, { batchSize: 3, concurrency: 2 });
    // As many as it asked for: there are more, which are no concern of this process any more.
    const late = events(3);
    conveyor.feed();
    conveyor.stop();
    const idle = conveyor.idle();
    await ends.answer(0, late);
    await ends.finish(...late.slice(0, 2));
    await ends.finish(...late.slice(2));
    expect(ends.exchanges.map(({ limit }) => limit)).toEqual([3, 0, 0]);
    await ends.answer(1, []);
    await ends.answer(2, []);
    await idle;
  });

  it('that is abandoned tries nothing any more', async () => {
    const ends = new Ends();
    const conveyor = new Conveyor(ends, SETTINGS);
    const claimed = event();
    conveyor.take([claimed]);
    await ends.finish(claimed);
    conveyor.stop();
    const idle = conveyor.idle();
    conveyor.abandon();
    ends.exchanges[0]?.answer.reject(new Error('no connection'));
    await turns();
    expect(ends.failures).toEqual([]);
    expect(ends.exchanges).toHaveLength(1);
    // Nor lets anybody wait who waited for the end.
    await idle;
  });
});
