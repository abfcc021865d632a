/** Names the work that is done once. */
export interface GateName {
  readonly key: string;
  readonly version: string;
}

/** Names a run under way: whoever does not hold its token changes nothing. */
export interface GateLease extends GateName {
  readonly leaseToken: string;
}

/** What a retry can mend, what it cannot, and what is neither known to be the one nor the other. */
export type FailureKind = 'transient' | 'deterministic' | 'unknown';

/** The state of a gate, as it is stored. */
export interface Sentinel extends GateName {
  /** When it was stamped; `null` as long as it is not, or if the stamp is the application's own. */
  readonly stampedAt: Date | null;
  /** Failures in a row. */
  readonly failures: number;
  /** How many of them, counted from the last, had the same message. */
  readonly sameFailures: number;
  readonly lastError: string | null;
  readonly lastErrorKind: FailureKind | null;
  readonly failedAt: Date | null;
  /** Closed since then; also while it is tried again after its time. */
  readonly closedAt: Date | null;
  readonly closedUntil: Date | null;
  /** How often in a row it was closed. */
  readonly closings: number;
}

/** A gate in a list, by the store's clock. */
export interface GateState extends Sentinel {
  /** A process is at it. */
  readonly running: boolean;
  /** Calls fail at once. */
  readonly closed: boolean;
}

export interface SentinelClaim {
  /**
   * `claimed`: the lease is the caller's. `stamped`: there is nothing to do. `running`: a process is at it, in whatever
   * version. `closed`: it is not to be tried now.
   */
  readonly answer: 'claimed' | 'stamped' | 'running' | 'closed';
  /** Claimed from a process that died over it. */
  readonly abandoned: boolean;
  /** As it was before. */
  readonly sentinel: Sentinel;
}

export interface SentinelClaimRequest extends GateLease {
  /** `false`: the stamp is the application's own, and it looks itself. */
  readonly heedStamp: boolean;
  readonly leaseMs: number;
}

/** What a failure has led to; decided by the caller. */
export interface SentinelFailure {
  readonly failures: number;
  readonly sameFailures: number;
  readonly error: string;
  readonly kind: FailureKind;
  /** For how long the gate closes; `null`: it stays open. */
  readonly closeMs: number | null;
}

export interface SentinelFilter {
  readonly key?: string | undefined;
  /** Only those whose last run has failed. */
  readonly failing?: boolean | undefined;
  readonly limit: number;
}

export interface SentinelStats {
  /** Gates whose last run has failed. */
  readonly failing: number;
  /** Those of them that are closed. */
  readonly closed: number;
}

// Versions of one key: more than anybody has, and still an end.
const VERSIONS_LOOKED_AT = 1_000;

/**
 * Where sentinels rest: a port like the outbox's store, with the same rules. The store's own clock decides, and a
 * change to a run under way names its lease.
 */
export abstract class SentinelStore {
  abstract claim(request: SentinelClaimRequest): Promise<SentinelClaim>;

  /** Prolongs the lease from the store's now. @returns whether it was still held */
  abstract renew(lease: GateLease, leaseMs: number): Promise<boolean>;

  /**
   * Ends the lease: the work is done, its failures are forgotten.
   * @param stamped `false`: without the stamp, which is the application's own or is to stay unset
   * @returns whether the lease was still held
   */
  abstract stamp(lease: GateLease, stamped: boolean): Promise<boolean>;

  /** Ends the lease: the work has failed. @returns the state it is in now; `null` if the lease was no longer held */
  abstract fail(lease: GateLease, failure: SentinelFailure): Promise<Sentinel | null>;

  /** Ends the lease without a result. @returns whether it was still held */
  abstract release(lease: GateLease): Promise<boolean>;

  /** Opens the gate and counts from the start. @returns how many versions had failures */
  abstract reopen(key: string, version: string | undefined): Promise<number>;

  /** Those that failed last come first, then those made last. */
  abstract list(filter: SentinelFilter): Promise<GateState[]>;

  abstract stats(): Promise<SentinelStats>;

  /** One of them; `null` if there is none of this name. */
  async find({ key, version }: GateName): Promise<GateState | null> {
    const versions = await this.list({ key, limit: VERSIONS_LOOKED_AT });
    return versions.find((sentinel) => sentinel.version === version) ?? null;
  }
}
