import {
  SentinelStore,
  type GateLease,
  type GateName,
  type GateState,
  type Sentinel,
  type SentinelClaim,
  type SentinelClaimRequest,
  type SentinelFailure,
  type SentinelFilter,
  type SentinelStats,
} from '../sentinel-store.js';

interface Row {
  state: Sentinel;
  readonly createdAt: number;
  lease: { readonly token: string; readonly until: number } | undefined;
}

const UNTRIED = {
  failures: 0,
  sameFailures: 0,
  lastError: null,
  lastErrorKind: null,
  failedAt: null,
  closedAt: null,
  closedUntil: null,
  closings: 0,
} as const;

/** Sentinels in memory, by the same rules as in PostgreSQL. A restart forgets them. */
export class InMemorySentinelStore extends SentinelStore {
  private readonly rows = new Map<string, Row>();

  /** @param now the store's clock, in milliseconds */
  constructor(private readonly now: () => number) {
    super();
  }

  async claim(request: SentinelClaimRequest): Promise<SentinelClaim> {
    const row = this.rowOf(request);
    const { state, lease } = row;
    const now = this.now();
    const answer = this.answerTo(request, state, now);
    if (answer === 'claimed')
      row.lease = { token: request.leaseToken, until: now + request.leaseMs };
    return {
      answer,
      abandoned: answer === 'claimed' && lease !== undefined,
      sentinel: state,
    };
  }

  async renew(lease: GateLease, leaseMs: number): Promise<boolean> {
    const row = this.heldBy(lease);
    if (row === undefined) return false;
    row.lease = { token: lease.leaseToken, until: this.now() + leaseMs };
    return true;
  }

  async stamp(lease: GateLease, stamped: boolean): Promise<boolean> {
    const stampedAt = stamped ? new Date(this.now()) : null;
    return this.end(lease, { ...UNTRIED, stampedAt }) !== null;
  }

  async fail(lease: GateLease, failure: SentinelFailure): Promise<Sentinel | null> {
    const now = this.now();
    const { failures, sameFailures, error, kind, closeMs } = failure;
    const { closedAt, closings } = this.rowOf(lease).state;
    const isClosing = closeMs !== null;
    return this.end(lease, {
      failures,
      sameFailures,
      lastError: error,
      lastErrorKind: kind,
      failedAt: new Date(now),
      closedAt: isClosing ? (closedAt ?? new Date(now)) : null,
      closedUntil: isClosing ? new Date(now + closeMs) : null,
      closings: isClosing ? closings + 1 : closings,
    });
  }

  async release(lease: GateLease): Promise<boolean> {
    return this.end(lease, {}) !== null;
  }

  async reopen(key: string, version: string | undefined): Promise<number> {
    const meant = [...this.rows.values()].filter(
      ({ state }) =>
        state.key === key && state.version === (version ?? state.version) && state.failures > 0,
    );
    for (const row of meant) {
      const { lastError, lastErrorKind, failedAt } = row.state;
      row.state = { ...row.state, ...UNTRIED, lastError, lastErrorKind, failedAt };
    }
    return meant.length;
  }

  async list({ key, failing = false, limit }: SentinelFilter): Promise<GateState[]> {
    const now = this.now();
    const meant = [...this.rows.values()].filter(
      ({ state }) => (key === undefined || state.key === key) && (!failing || state.failures > 0),
    );
    return meant
      .toSorted(
        (a, b) =>
          (b.state.failedAt?.getTime() ?? 0) - (a.state.failedAt?.getTime() ?? 0) ||
          b.createdAt - a.createdAt ||
          (a.state.key < b.state.key ? -1 : 1),
      )
      .slice(0, limit)
      .map(({ state, lease }) =>
        Object.assign({}, state, {
          running: (lease?.until ?? 0) > now,
          closed: isClosed(state, now),
        }),
      );
  }

  async stats(): Promise<SentinelStats> {
    const now = this.now();
    const failing = [...this.rows.values()].filter(({ state }) => state.failures > 0);
    return {
      failing: failing.length,
      closed: failing.filter(({ state }) => isClosed(state, now)).length,
    };
  }

  private answerTo(
    { key, heedStamp }: SentinelClaimRequest,
    state: Sentinel,
    now: number,
  ): SentinelClaim['answer'] {
    if (heedStamp && state.stampedAt !== null) return 'stamped';
    if (isClosed(state, now)) return 'closed';
    const isRunning = [...this.rows.values()].some(
      (row) => row.state.key === key && (row.lease?.until ?? 0) > now,
    );
    return isRunning ? 'running' : 'claimed';
  }

  /** Ends the lease, if it is still held. */
  private end(lease: GateLease, change: Partial<Sentinel>): Sentinel | null {
    const row = this.heldBy(lease);
    if (row === undefined) return null;
    row.lease = undefined;
    row.state = { ...row.state, ...change };
    return row.state;
  }

  private heldBy(lease: GateLease): Row | undefined {
    const row = this.rowOf(lease);
    return row.lease?.token === lease.leaseToken ? row : undefined;
  }

  private rowOf({ key, version }: GateName): Row {
    const place = JSON.stringify([key, version]);
    const known = this.rows.get(place);
    if (known !== undefined) return known;
    const row: Row = {
      state: { key, version, stampedAt: null, ...UNTRIED },
      createdAt: this.now(),
      lease: undefined,
    };
    this.rows.set(place, row);
    return row;
  }
}

function isClosed({ closedUntil }: Sentinel, now: number): boolean {
  return closedUntil !== null && closedUntil.getTime() > now;
}
