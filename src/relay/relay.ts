import type { Delivery, DeliveryOutcome, RunningDelivery } from '../delivery/delivery.js';
import { OutboxError } from '../event/outbox-error.js';
import type { ClaimedEvent, ClaimRequest, OutboxStore, Settlement } from '../store/outbox-store.js';
import { Conveyor, type ConveyorEnds, type Finished } from './conveyor.js';
import { judge, judgeExpired, type JudgeContext } from './judge.js';
import { LeaseKeeper, type Held } from './lease-keeper.js';
import type { Log } from './log.js';
import { Outage } from './outage.js';
import type { RelaySettings } from './relay-settings.js';
import type { Reporter } from './reporter.js';
import { within } from './within.js';

// After a stop has cancelled what still ran: the time to write that down.
const LAST_SETTLE_MS = 2_000;

// After a claim that took a shortcut.
const LOOK_AGAIN_MS = 1_000;

/** A claimed event that this process is responsible for. */
class Handling implements Held {
  lost = false;
  delivery: RunningDelivery | undefined;

  heldSince: number;

  /** @param claimedAt by the process's own steady clock */
  constructor(
    readonly lease: ClaimedEvent,
    readonly claimedAt: number,
  ) {
    this.heldSince = claimedAt;
  }

  onLost(): void {
    this.lost = true;
    this.delivery?.cancel(new Error('the lease was lost to another process'));
  }
}

/**
 * Moves events: claim, deliver, judge, settle. Several relays may work on one table; none needs the others.
 */
export class Relay implements ConveyorEnds {
  private readonly leases: LeaseKeeper<Handling>;
  private readonly outage: Outage;
  private readonly conveyors = new Set<Conveyor>();
  /** Under way by hand: a stop waits for their claims too. */
  private readonly passes = new Set<Promise<number>>();
  private opened = false;
  private stopping = false;

  /** Told when an event will be due again in so many milliseconds. */
  onDueIn: (delayMs: number) => void = () => {};

  /** Told when a claim came back full: there is more than this process can take at once. */
  onBacklog: () => void = () => {};

  constructor(
    private readonly store: OutboxStore,
    private readonly delivery: Delivery,
    private readonly reporter: Reporter,
    private readonly settings: RelaySettings,
    log: Log,
  ) {
    this.leases = new LeaseKeeper(store, log, settings.leaseMs);
    this.outage = new Outage(log);
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

  /** A conveyor between the store and the listeners, which a stop stops. */
  openConveyor(): Conveyor {
    const conveyor = new Conveyor(this, this.settings);
    this.conveyors.add(conveyor);
    return conveyor;
  }

  /**
   * One pass: claims at most `limit` due events, delivers and settles them.
   * @returns how many it handled
   * @throws OutboxError `SETUP` before the listeners are attached: nobody would hear the events
   */
  async pass(limit: number): Promise<number> {
    if (this.stopping) return 0;
    if (!this.opened) {
      throw new OutboxError(
        'SETUP',
        'the listeners are not attached yet: await app.init() or app.listen() first',
      );
    }
    const pass = this.claimAndMove(limit);
    this.passes.add(pass);
    try {
      return await pass;
    } finally {
      this.passes.delete(pass);
    }
  }

  private async claimAndMove(limit: number): Promise<number> {
    const claimed = await this.store.claim(this.claimRequest(limit));
    this.hold(claimed);
    const conveyor = this.openConveyor();
    conveyor.take(claimed);
    await conveyor.idle();
    this.conveyors.delete(conveyor);
    return claimed.length;
  }

  /** Counts a failed attempt for every event whose relay died over it. @returns how many it found */
  async reap(): Promise<number> {
    const expired = await this.store.reap(this.claimRequest(this.settings.batchSize));
    if (expired.length === 0) return 0;
    const judged = expired.map((event, index) => ({
      event,
      settlement: judgeExpired(event, this.judgeContext(event.claimedAt), {
        index,
        of: expired.length,
      }),
    }));
    const settled = await this.store.settle(judged.map(({ settlement }) => settlement));
    this.reporter.reaped(settled.length);
    this.report(judged, new Set(settled));
    return expired.length;
  }

  /**
   * No new claims; waits for listeners at work, at most `shutdownTimeoutMs`, then tells them to stop; gives the rest
   * back without spending an attempt.
   */
  async stop(): Promise<void> {
    this.stopping = true;
    for (const conveyor of this.conveyors) conveyor.stop();
    await this.idleWithin(this.settings.shutdownTimeoutMs);
    for (const { delivery } of this.leases.all()) {
      delivery?.cancel(new Error('the process is shutting down'));
    }
    await this.idleWithin(LAST_SETTLE_MS);
    for (const conveyor of this.conveyors) conveyor.abandon();
  }

  async exchange(finished: readonly Finished[], limit: number): Promise<ClaimedEvent[]> {
    const claim = limit > 0 && !this.stopping ? this.claimRequest(limit) : null;
    const settlements = finished.map(({ settlement }) => settlement);
    const { settled, claimed, lookedEverywhere } = await this.store.settleAndClaim(
      settlements,
      claim,
    );
    this.outage.over();
    this.hold(claimed);
    if (limit > 0 && claimed.length === limit) this.onBacklog();
    else if (!lookedEverywhere) this.onDueIn(LOOK_AGAIN_MS);
    this.report(finished, settled);
    return claimed;
  }

  async claimOthers(otherThan: readonly string[]): Promise<ClaimedEvent[]> {
    if (this.stopping) return [];
    const request = { ...this.claimRequest(this.settings.batchSize), otherThan };
    const claimed = await this.store.claimOthers(request);
    this.hold(claimed);
    return claimed;
  }

  failed(error: unknown): number {
    return this.outage.waitMs(error);
  }

  async handle(event: ClaimedEvent): Promise<Settlement | undefined> {
    const handling = this.leases.under(event);
    // Lost while it waited for a place.
    if (handling === undefined) {
      this.reporter.leaseLost(event);
      return undefined;
    }
    if (!this.stopping && !handling.lost) handling.delivery = this.delivery.start(event);
    const outcome = (await handling.delivery?.outcome) ?? CANCELLED;

    this.leases.letGo(handling);
    if (handling.lost) {
      this.reporter.leaseLost(event);
      return undefined;
    }
    return this.settlementFor(event, outcome, handling.claimedAt);
  }

  private settlementFor(event: ClaimedEvent, outcome: DeliveryOutcome, since: number): Settlement {
    if (outcome.kind === 'cancelled') {
      const acknowledgedBy = [...event.acknowledgedBy, ...outcome.succeeded];
      return { id: event.id, leaseToken: event.leaseToken, outcome: 'released', acknowledgedBy };
    }
    if (outcome.kind === 'answered') this.reporter.failed(event, outcome.failures);
    // The database's clock at the claim, and what has passed since by a clock that nobody sets.
    const now = new Date(event.claimedAt.getTime() + performance.now() - since);
    const settlement = judge(event, outcome, this.judgeContext(now));
    if (settlement.outcome === 'completed') this.reporter.delivered(event, now);
    return settlement;
  }

  private report(finished: readonly Finished[], held: ReadonlySet<string>): void {
    const settled = finished.filter(({ event }) => held.has(event.id));
    this.reporter.settled(settled);
    for (const { settlement } of settled)
      if (settlement.outcome === 'retry') this.onDueIn(settlement.delayMs);
    if (settled.length === finished.length) return;
    for (const { event } of finished) if (!held.has(event.id)) this.reporter.leaseLost(event);
  }

  private hold(claimed: readonly ClaimedEvent[]): void {
    const now = performance.now();
    for (const event of claimed) this.leases.hold(new Handling(event, now));
  }

  private claimRequest(limit: number): ClaimRequest {
    return { limit, leaseMs: this.settings.leaseMs };
  }

  private judgeContext(now: Date): JudgeContext {
    return { settings: this.settings, now, random: Math.random() };
  }

  private async idleWithin(limitMs: number): Promise<void> {
    const idle = Promise.all([
      ...[...this.conveyors].map((conveyor) => conveyor.idle()),
      Promise.allSettled(this.passes),
    ]);
    await within(limitMs, idle);
  }
}

const CANCELLED: DeliveryOutcome = { kind: 'cancelled', succeeded: [] };
