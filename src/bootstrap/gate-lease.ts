import { errorText } from '../event/error-text.js';
import { OutboxError } from '../event/outbox-error.js';
import type { Log } from '../relay/log.js';
import type { GateLease, SentinelStore } from '../store/sentinel-store.js';

/** Another process may be at the work: what this one still does is void. */
export class LeaseLost extends OutboxError {
  constructor(key: string) {
    super(
      'GATE_TRANSIENT',
      `the lease of gate ${JSON.stringify(key)} was lost: this process stalled or was cut off from its database`,
    );
  }
}

/**
 * Keeps the lease of a run alive for as long as it is at work. Lost is a lease that the store says is somebody else's,
 * and one that could not be renewed in its time: nobody knows then whose it is.
 */
export class KeptLease {
  private readonly timer: NodeJS.Timeout;
  private renewedAt = performance.now();
  private renewing: Promise<void> | undefined;

  constructor(
    private readonly store: SentinelStore,
    readonly lease: GateLease,
    private readonly leaseMs: number,
    private readonly log: Log,
    private readonly onLost: (reason: LeaseLost) => void,
  ) {
    // Twice as often as needed: a renewal that fails can be tried again before the lease is over.
    this.timer = setInterval(() => void this.renew(), leaseMs / 6).unref();
  }

  /** Renews now: before a step that cannot be taken back. */
  async confirm(): Promise<void> {
    await this.renewing;
    if (!(await this.store.renew(this.lease, this.leaseMs))) throw new LeaseLost(this.lease.key);
    this.renewedAt = performance.now();
  }

  stop(): void {
    clearInterval(this.timer);
  }

  private async renew(): Promise<void> {
    if (performance.now() - this.renewedAt > this.leaseMs) return this.lost();
    if (this.renewing !== undefined) return;
    this.renewing = this.renewOnce();
    await this.renewing;
    this.renewing = undefined;
  }

  private async renewOnce(): Promise<void> {
    const startedAt = performance.now();
    try {
      if (await this.store.renew(this.lease, this.leaseMs)) this.renewedAt = startedAt;
      else this.lost();
    } catch (error) {
      this.log.warn(
        `could not renew the lease of gate ${JSON.stringify(this.lease.key)}, will try again: ${errorText(error)}`,
      );
    }
  }

  private lost(): void {
    this.stop();
    this.onLost(new LeaseLost(this.lease.key));
  }
}
