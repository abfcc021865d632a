import { errorText } from '../event/error-text.js';
import type { Lease, OutboxStore } from '../store/outbox-store.js';
import type { Log } from './log.js';

/** A claimed event this process is responsible for. */
export interface Held {
  readonly lease: Lease;
  /** When it was claimed, or last renewed, by the process's steady clock. */
  heldSince: number;
  /** Called when the lease turned out to belong to somebody else. */
  onLost(): void;
}

/**
 * Keeps leases alive for as long as their events are held, so that a listener may take longer than a lease: each is
 * renewed when a third of it is gone, all that are due in one statement. It looks twice as often as that: a renewal
 * that fails can be tried again several times before the lease is over.
 */
export class LeaseKeeper<Handling extends Held> {
  private held = new Map<Lease, Handling>();
  private timer: NodeJS.Timeout | undefined;
  private renewing = false;
  private failing = false;

  constructor(
    private readonly store: OutboxStore,
    private readonly log: Log,
    private readonly leaseMs: number,
  ) {}

  hold(held: Handling): void {
    this.held.set(held.lease, held);
    // Not what keeps the process alive: whoever awaits the delivery does.
    this.timer ??= setInterval(() => void this.renew(), this.leaseMs / 6).unref();
  }

  /** What is held under this very lease object; `undefined` if nothing is, or not any more. */
  under(lease: Lease): Handling | undefined {
    return this.held.get(lease);
  }

  all(): Iterable<Handling> {
    return this.held.values();
  }

  letGo({ lease }: Handling): void {
    this.held.delete(lease);
    if (this.held.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
    // A Map that is in use for long chains its outgrown tables to one another. Once V8 has moved one of them to the old
    // space, all that were ever in the later ones survives until a full collection: a third of the relay's work went
    // into copying dead events. So it begins anew whenever it is empty.
    this.held = new Map();
  }

  private async renew(): Promise<void> {
    if (this.renewing) return;
    this.renewing = true;
    try {
      await this.renewAgeing();
      this.failing = false;
    } catch (error) {
      if (!this.failing)
        this.log.warn(`could not renew leases, will try again: ${errorText(error)}`);
      this.failing = true;
    } finally {
      this.renewing = false;
    }
  }

  private async renewAgeing(): Promise<void> {
    const now = performance.now();
    const ageing = [...this.held.values()].filter(
      ({ heldSince }) => now - heldSince >= this.leaseMs / 3,
    );
    if (ageing.length === 0) return;
    const still = new Set(
      await this.store.renew(
        ageing.map(({ lease }) => lease),
        this.leaseMs,
      ),
    );
    for (const held of ageing) {
      // Settled while the statement ran: no longer ours to judge.
      if (!this.held.has(held.lease)) continue;
      if (still.has(held.lease.id)) held.heldSince = now;
      else {
        this.letGo(held);
        held.onLost();
      }
    }
  }
}
