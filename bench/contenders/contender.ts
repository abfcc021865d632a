/** What every event carries: about 300 bytes of JSON. */
export interface BenchPayload {
  /** 1, 2, 3, …: which event it is. */
  readonly n: number;
  /** Its listener takes a second. */
  readonly slow: boolean;
  readonly text: string;
}

/** Text that makes a payload of 300 bytes. */
export const FILLER = 'x'.repeat(265);

/** What a listener does: nothing but to note that it was called, or to take its time. */
export type Listener = (payload: BenchPayload) => Promise<void> | undefined;

export interface Backlog {
  readonly count: number;
  /** The events 1, 1 + slowEvery, 1 + 2 slowEvery, … are slow. 0: none is. */
  readonly slowEvery: number;
}

/** Stores one event together with a row of business data; resolves when COMMIT has answered. */
export type EnqueueInTransaction = (payload: BenchPayload) => Promise<void>;

/** Something that stores events in PostgreSQL and hands them to a listener. One module each, in a process of its own. */
export interface Contender {
  /** Makes its tables in an empty database. */
  prepare(): Promise<void>;
  /** Stores events that are due. */
  fill(backlog: Backlog): Promise<void>;
  /** Begins to deliver. Returns when that is under way. */
  start(listener: Listener): Promise<void>;
  /** SQL with one column `open`: is any event not settled yet? */
  readonly openSql: string;
  /** The table that it claims events from. */
  readonly table: string;
  enqueuer?(): Promise<EnqueueInTransaction>;
  /** Milliseconds that each claim took so far, in order. */
  claimTimes?(): readonly number[];
  /** Deletes old finished events. @returns how many */
  prune?(): Promise<number>;
  /** Makes a relay look at once. */
  wake?(): Promise<void>;
}

export type MakeContender = (url: string, options: never) => Contender | Promise<Contender>;
