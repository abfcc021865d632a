import { randomUUID } from 'node:crypto';
import type { OutboxEventStatus, PreviousLife } from '../../../src/event/outbox-event.js';
import type {
  ClaimedEvent,
  Lease,
  NewEvent,
  OutboxStore,
  Settlement,
  SqlExecutor,
} from '../../../src/store/outbox-store.js';

/** A store, and what a test needs beside the port: its clock, and its rows as they lie. */
export interface StoreUnderTest extends AsyncDisposable {
  readonly store: OutboxStore;
  /** Forgets every event. */
  clear(): Promise<void>;
  /** The store's clock, in milliseconds since the epoch. */
  now(): Promise<number>;
  /** Lets time pass: what is stored is so much older afterwards, and due so much earlier. */
  pass(ms: number): Promise<void>;
  row(id: string): Promise<RawRow | null>;
  /** Brings up to date what is only estimated. */
  analyze(): Promise<void>;
  /** Opens a transaction as a caller would. Absent: the store cannot take part in one, and refuses to. */
  begin?(): Promise<OpenTransaction>;
}

export interface OpenTransaction {
  readonly executor: SqlExecutor;
  commit(): Promise<void>;
  rollback(): Promise<void>;
}

/** Times in milliseconds since the epoch, with fractions where the store has them. */
export interface RawRow {
  readonly id: string;
  readonly eventType: string;
  readonly payload: unknown;
  readonly metadata: unknown;
  readonly status: OutboxEventStatus;
  readonly retryCount: number;
  readonly lastError: string | null;
  readonly acknowledgedBy: readonly string[];
  readonly createdAt: number;
  readonly scheduledAt: number;
  readonly processedAt: number | null;
  readonly leaseToken: string | null;
  readonly leasedUntil: number | null;
  readonly unheardSince: number | null;
  readonly previousLives: readonly PreviousLife[];
}

export const MINUTE = 60_000;
export const LEASE_MS = MINUTE;

export function newEvent(changes: Partial<NewEvent> = {}): NewEvent {
  return {
    id: randomUUID(),
    eventType: 'test.event',
    payload: { x: 1 },
    metadata: {},
    ...changes,
  };
}

/** What is left of an outcome when the lease is taken off. */
type Outcome = Settlement extends infer S
  ? S extends Settlement
    ? Omit<S, 'id' | 'leaseToken'>
    : never
  : never;

/** The store at hand, and the few steps that most tests are made of. */
export class Subject {
  private opened: StoreUnderTest | undefined;

  get current(): StoreUnderTest {
    if (this.opened === undefined) throw new Error('the store was not opened');
    return this.opened;
  }

  set current(opened: StoreUnderTest) {
    this.opened = opened;
  }

  get store(): OutboxStore {
    return this.current.store;
  }

  pass(ms: number): Promise<void> {
    return this.current.pass(ms);
  }

  async row(id: string): Promise<RawRow> {
    const row = await this.current.row(id);
    if (row === null) throw new Error(`there is no row ${id}`);
    return row;
  }

  /** Runs it, and answers the earliest and the latest moment at which the store can have done it. */
  async timed(run: () => Promise<unknown>): Promise<[from: number, to: number]> {
    const from = await this.current.now();
    await run();
    return [from, await this.current.now()];
  }

  async enqueue(...events: Partial<NewEvent>[]): Promise<string[]> {
    const complete = events.map(newEvent);
    await this.store.enqueue(complete);
    return complete.map(({ id }) => id);
  }

  /** So many events, each due a second after the one before, all of them due by now. */
  async enqueueInOrder(count: number, changes: Partial<NewEvent> = {}): Promise<string[]> {
    const start = (await this.current.now()) - count * 1_000;
    const due = (position: number): Date => new Date(start + position * 1_000);
    return this.enqueue(
      ...Array.from({ length: count }, (_, position) => ({
        ...changes,
        scheduledAt: due(position),
      })),
    );
  }

  claim(limit = 100, leaseMs = LEASE_MS): Promise<ClaimedEvent[]> {
    return this.store.claim({ limit, leaseMs });
  }

  reap(limit = 100, leaseMs = LEASE_MS): Promise<ClaimedEvent[]> {
    return this.store.reap({ limit, leaseMs });
  }

  /** Enqueues one and claims it. */
  async claimed(event: Partial<NewEvent> = {}): Promise<ClaimedEvent> {
    const [id] = await this.enqueue(event);
    const claimed = (await this.claim()).find((each) => each.id === id);
    if (claimed === undefined) throw new Error('it was not claimed');
    return claimed;
  }

  settle(events: ClaimedEvent | readonly ClaimedEvent[], outcome: Outcome): Promise<string[]> {
    return this.store.settle(
      [events].flat().map((event) => Object.assign(leaseOf(event), outcome)),
    );
  }

  /** Dead letters, the first of them longest dead, a second apart. */
  async dead(...events: Partial<NewEvent>[]): Promise<string[]> {
    const ids: string[] = [];
    for (const event of events) {
      await this.pass(1_000);
      const claimed = await this.claimed(event);
      await this.settle(claimed, failed());
      ids.push(claimed.id);
    }
    return ids;
  }

  async completed(event: Partial<NewEvent> = {}): Promise<string> {
    const claimed = await this.claimed(event);
    await this.settle(claimed, { outcome: 'completed' });
    return claimed.id;
  }

  /** Of one of the four states, with ten failed attempts behind it. */
  async inState(status: OutboxEventStatus): Promise<string> {
    const first = await this.claimed();
    await this.settle(first, retry({ retryCount: 9, delayMs: 0 }));
    if (status === 'PENDING') return first.id;
    const again = (await this.claim()).find(({ id }) => id === first.id);
    if (again === undefined) throw new Error('it was not claimed again');
    if (status === 'COMPLETED') await this.settle(again, { outcome: 'completed' });
    if (status === 'FAILED') await this.settle(again, failed({ retryCount: 10 }));
    return first.id;
  }
}

export function retry(
  changes: Partial<Extract<Outcome, { outcome: 'retry' }>> = {},
): Extract<Outcome, { outcome: 'retry' }> {
  return {
    outcome: 'retry',
    retryCount: 1,
    lastError: 'it failed',
    acknowledgedBy: [],
    delayMs: 2 * MINUTE,
    ...changes,
  };
}

export function failed(
  changes: Partial<Extract<Outcome, { outcome: 'failed' }>> = {},
): Extract<Outcome, { outcome: 'failed' }> {
  return {
    outcome: 'failed',
    retryCount: 5,
    lastError: 'it failed for good',
    acknowledgedBy: [],
    ...changes,
  };
}

export function leaseOf({ id, leaseToken }: Lease): Lease {
  return { id, leaseToken };
}

export function idsOf(rows: readonly { id: string }[]): string[] {
  return rows.map(({ id }) => id);
}
