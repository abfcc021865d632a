import { setTimeout as sleep } from 'node:timers/promises';
import { OutboxError } from '../event/outbox-error.js';
import type { Delivery, DeliveryOutcome, RunningDelivery } from '../delivery/delivery.js';
import type { ClaimedEvent, OutboxStore, Settlement } from '../store/outbox-store.js';
import { judge, judgeExpired, type JudgeContext } from './judge.js';
import { LeaseKeeper, type Held } from './lease-keeper.js';
import type { Log } from './log.js';
import type { RelaySettings } from './relay-settings.js';
import type { Reporter } from './reporter.js';
import { Settler } from './settler.js';

// After a stop has cancelled what still ran: the time to write that down.
const LAST_SETTLE_MS = 2_000;

/** A claimed event on its way through this process. */
interface Handling extends Held {
  /** By the process's own steady clock: what has passed since the claim. */
  readonly since: number;
  lost: boolean;
  delivery: RunningDelivery | undefined;
}

/**
 * Moves events: claim, deliver, judge, settle. Several relays may work on one table; none needs the others.
 */
export class Relay {
  private readonly settler: Settler;
  private readonly leases: LeaseKeeper;
  private readonly handlings = new Set<Handling>();
  private onIdle: () => void = () => {};
  private opened = false;
  private stopping = false;

  /** Told when an event will be due again in so many milliseconds. */
  onDueIn: (delayMs: number) => void = () => {};

  constructor(
    private readonly store: OutboxStore,
    private readonly delivery: Delivery,
    private readonly reporter: Reporter,
    private readonly settings: RelaySettings,
    log: Log,
  ) {
    // A lease is renewed when a third is gone, so a third is left at the least when a delivery ends.
    this.settler = new Settler(store, log, settings.leaseMs / 3);
    this.leases = new LeaseKeeper(store, log, settings.leaseMs);
  }

  /** The listeners are attached: from now on events can reach them. */
  open(): void {
    this.opened = true;
  }

  /** Between {@link open} and {@link stop}: events may be claimed. */
  get isOpen(): boolean {
    return this.opened && !this.stopping;
  }

  get isStopping(): boolean {
    return this.stopping;
  }

  /** One pass: claims at most `limit` due events, delivers and settles them. @returns how many it handled */
  async pass(limit: number): Promise<number> {
    const claimed = await this.claim(limit);
    const queue = claimed.values();
    const places = Array.from(
      { length: Math.min(this.settings.concurrency, claimed.length) },
      async () => {
        for (const handle of queue) await handle();
      },
    );
    await Promise.all(places);
    return claimed.length;
  }

  /**
   * Claims at most `limit` due events. They are held from now on.
   * @returns for each event, what handles it: deliver, judge, settle. It never rejects.
   * @throws OutboxError `SETUP` before the listeners are attached: nobody would hear the events
   */
  async claim(limit: number): Promise<(() => Promise<void>)[]> {
    if (this.stopping) return [];
    if (!this.opened)
      throw new OutboxError(
        'SETUP',
        'the listeners are not attached yet: await app.init() or app.listen() first',
      );
    const claimed = await this.store.claim({ limit, leaseMs: this.settings.leaseMs });
    return claimed.map((event) => {
      const handling = this.hold(event);
      return () => this.handle(event, handling);
    });
  }

  /** Counts a failed attempt for every event whose relay died over it. @returns how many it found */
  async reap(): Promise<number> {
    const expired = await this.store.reap({
      limit: this.settings.batchSize,
      leaseMs: this.settings.leaseMs,
    });
    await Promise.all(
      expired.map((event) =>
        this.settle(event, judgeExpired(event, this.judgeContext(event.claimedAt))),
      ),
    );
    return expired.length;
  }

  /**
   * No new claims; waits for listeners at work, at most `shutdownTimeoutMs`, then tells them to stop; gives the rest
   * back without spending an attempt.
   */
  async stop(): Promise<void> {
    this.stopping = true;
    await this.idle(this.settings.shutdownTimeoutMs);
    for (const { delivery } of this.handlings)
      delivery?.cancel(new Error('the process is shutting down'));
    await this.idle(LAST_SETTLE_MS);
  }

  private async handle(event: ClaimedEvent, handling: Handling): Promise<void> {
    if (!this.stopping && !handling.lost) handling.delivery = this.delivery.start(event);
    const outcome = (await handling.delivery?.outcome) ?? CANCELLED;

    this.leases.letGo(handling);
    if (handling.lost) this.reporter.leaseLost(event);
    else {
      const now = new Date(event.claimedAt.getTime() + performance.now() - handling.since);
      await this.settle(event, this.settlementFor(event, outcome, now));
    }
    this.handlings.delete(handling);
    if (this.handlings.size === 0) this.onIdle();
  }

  private settlementFor(event: ClaimedEvent, outcome: DeliveryOutcome, now: Date): Settlement {
    if (outcome.kind === 'cancelled')
      return { id: event.id, leaseToken: event.leaseToken, outcome: 'released' };
    return judge(event, outcome, this.judgeContext(now));
  }

  private async settle(event: ClaimedEvent, settlement: Settlement): Promise<void> {
    const settled = await this.settler.settle(settlement);
    if (!settled) return this.reporter.leaseLost(event);
    this.reporter.settled(event, settlement);
    if (settlement.outcome === 'retry') this.onDueIn(settlement.delayMs);
  }

  private hold(event: ClaimedEvent): Handling {
    const handling: Handling = {
      lease: event,
      since: performance.now(),
      lost: false,
      delivery: undefined,
      onLost: () => {
        handling.lost = true;
        handling.delivery?.cancel(new Error('the lease was lost to another process'));
      },
    };
    this.handlings.add(handling);
    this.leases.hold(handling);
    return handling;
  }

  private judgeContext(now: Date): JudgeContext {
    return { settings: this.settings, now, random: Math.random() };
  }

  private async idle(limitMs: number): Promise<void> {
    if (this.handlings.size === 0) return;
    const idle = new Promise<void>((resolve) => {
      this.onIdle = resolve;
    });
    await Promise.race([idle, sleep(limitMs)]);
  }
}

const CANCELLED: DeliveryOutcome = { kind: 'cancelled' };
