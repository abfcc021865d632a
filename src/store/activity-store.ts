/** A listener as others know it. */
export interface KnownListener {
  /** `ClassName.method` */
  readonly name: string;
  /** The event type or pattern it listens to, as text. */
  readonly event: string;
}

/** What a relay has settled, by event type. */
export interface ActivityCount {
  readonly eventType: string;
  /** Events completed. */
  readonly delivered: number;
  /** Failed attempts with another to come. */
  readonly retried: number;
  /** Events set aside as dead letters. */
  readonly failed: number;
}

/** What a relay tells of itself every 15 seconds. */
export interface RelayReport {
  readonly relayId: string;
  /** `host:pid` */
  readonly name: string;
  /** Of this package. */
  readonly version: string;
  readonly listeners: readonly KnownListener[];
  /** Counts up from 1: a report sent again is counted once. */
  readonly number: number;
  /** The last one. */
  readonly stopped: boolean;
  /** Since the report before. */
  readonly activity: readonly ActivityCount[];
}

/** A process that relays, or did within a day. */
export interface RelayState {
  readonly relayId: string;
  /** `host:pid` */
  readonly name: string;
  /** Of this package. */
  readonly version: string;
  readonly listeners: readonly KnownListener[];
  readonly startedAt: Date;
  readonly seenAt: Date;
  /** When it ended in good order; `null`: it did not, so far. */
  readonly stoppedAt: Date | null;
  /** Since its last report, in milliseconds, by the store's clock. */
  readonly silentMs: number;
}

/** What was settled in one step of time. */
export interface Activity extends ActivityCount {
  /** When the step began. */
  readonly at: Date;
}

export interface ActivityRequest {
  /** How far back, in milliseconds; rows are kept for 25 hours. */
  readonly sinceMs: number;
  /** Length of a step, in milliseconds: whole minutes. */
  readonly stepMs: number;
  readonly eventType?: string | undefined;
}

/** Where relays report what they are and do: a port like the outbox's store, with its own clock. */
export abstract class ActivityStore {
  abstract report(report: RelayReport): Promise<void>;

  /** Those that reported within a day, the one heard last first. */
  abstract relays(): Promise<RelayState[]>;

  /** Oldest first, then by event type; steps in which nothing happened are left out. */
  abstract activity(request: ActivityRequest): Promise<Activity[]>;
}
