import type { ClaimedEvent, Settlement } from '../store/outbox-store.js';

/** An event that has been delivered, and what is to become of it. */
export interface Finished {
  readonly event: ClaimedEvent;
  readonly settlement: Settlement;
}

/** What the conveyor moves events between. */
export interface ConveyorEnds {
  /**
   * Settles what is finished and claims at most `limit` events more, in one statement.
   * Rejects if the store fails; it is repeated then, which is safe: a lease ends only once.
   */
  exchange(finished: readonly Finished[], limit: number): Promise<ClaimedEvent[]>;
  /** Claims due events of other types than these, a few of each. Rejects if the store fails. */
  claimOthers(otherThan: readonly string[]): Promise<ClaimedEvent[]>;
  /** Delivers and judges. Never rejects. `undefined`: not ours any more, nothing to settle. */
  handle(event: ClaimedEvent): Promise<Settlement | undefined>;
  /** The store failed. @returns how long to wait before the next try, in milliseconds */
  failed(error: unknown): number;
}

export interface ConveyorSettings {
  readonly batchSize: number;
  readonly concurrency: number;
}

// While the answer to one exchange is on its way, what it brought before is delivered and goes out with another.
// A third adds nothing: PostgreSQL is busy then.
const MOST_EXCHANGES = 2;

// As long as there is a backlog, other types than those that wait here get a turn this often.
const OTHERS_EVERY_MS = 1_000;

/**
 * Keeps events moving: claimed ones wait for one of `concurrency` places, each place is filled again the moment it
 * is free (a slow listener holds nobody back but itself), and finished ones are settled together with the next claim.
 * Batches form by themselves: whatever finishes while a statement is under way goes with the next.
 */
export class Conveyor {
  private readonly waiting: ClaimedEvent[] = [];
  private finished: Finished[] = [];
  private running = 0;
  private exchanges = 0;
  private claiming = 0;
  private feeds = 0;
  /** Something may be due that has not been claimed. */
  private mayBeDue = false;
  /** The last claim came back full: there is a backlog, and a second claim may go out before the first is worked off. */
  private flowing = false;
  private stopping = false;
  private abandoned = false;
  private scheduled = false;
  private pause: NodeJS.Timeout | undefined;
  private nextLookForOthers: NodeJS.Timeout | undefined;
  private onIdle: (() => void)[] = [];

  constructor(
    private readonly ends: ConveyorEnds,
    private readonly settings: ConveyorSettings,
  ) {}

  /** Something may be due: claim. */
  feed(): void {
    this.feeds++;
    this.mayBeDue = true;
    this.move();
  }

  /** Takes events that have been claimed elsewhere. */
  take(events: readonly ClaimedEvent[]): void {
    this.waiting.push(...events);
    this.move();
  }

  /** Claims nothing more. What waits for a place is handled at once: whoever handles it knows that it is to be given back. */
  stop(): void {
    this.stopping = true;
    this.mayBeDue = false;
    for (const event of this.waiting.splice(0)) void this.work(event);
    this.move();
  }

  /** Lets go of what could not be settled in time: the reaper will find it. */
  abandon(): void {
    this.abandoned = true;
    clearTimeout(this.pause);
    clearTimeout(this.nextLookForOthers);
    this.finished = [];
    for (const resolve of this.onIdle.splice(0)) resolve();
  }

  /** Resolves when nothing is under way and nothing more is known to be due. */
  async idle(): Promise<void> {
    if (this.isIdle()) return;
    await new Promise<void>((resolve) => this.onIdle.push(resolve));
  }

  private isIdle(): boolean {
    return (
      (!this.mayBeDue || this.stopping) &&
      this.running + this.waiting.length + this.finished.length + this.exchanges === 0
    );
  }

  private move(): void {
    this.fillPlaces();
    while (this.exchanges < MOST_EXCHANGES && this.pause === undefined) {
      const limit = this.claimable();
      if (this.finished.length === 0 && limit === 0) break;
      void this.exchange(this.finished.splice(0), limit);
    }
    if (this.hasBacklog()) this.lookForOthersLater();
    if (!this.isIdle()) return;
    for (const resolve of this.onIdle.splice(0)) resolve();
  }

  private fillPlaces(): void {
    for (const event of this.waiting.splice(0, this.settings.concurrency - this.running))
      void this.work(event);
  }

  /** Claims only when a place is free: what would have to wait here is better off with another process. */
  private claimable(): number {
    const { batchSize, concurrency } = this.settings;
    const wanted = this.mayBeDue && !this.stopping;
    if (!wanted || this.running + this.waiting.length >= concurrency) return 0;
    return this.claiming === 0 || this.flowing ? batchSize : 0;
  }

  private async exchange(finished: Finished[], limit: number): Promise<void> {
    const claims = limit > 0;
    const feedsSeen = this.feeds;
    this.exchanges++;
    if (claims) this.claiming++;
    try {
      const claimed = await this.ends.exchange(finished, limit);
      if (claims) {
        this.flowing = claimed.length === limit;
        // Fed while the statement was under way: it may have looked too early.
        this.mayBeDue = this.flowing || (this.mayBeDue && this.feeds !== feedsSeen);
      }
      this.waiting.push(...claimed);
    } catch (error) {
      this.pauseAfter(error, finished);
    }
    this.exchanges--;
    if (claims) this.claiming--;
    this.move();
  }

  /** Of what claims for itself, and not of what was taken. */
  private hasBacklog(): boolean {
    return this.feeds > 0 && (this.mayBeDue || this.waiting.length > 0);
  }

  private lookForOthersLater(): void {
    if (this.stopping || this.nextLookForOthers !== undefined) return;
    this.nextLookForOthers = setTimeout(() => {
      this.nextLookForOthers = undefined;
      if (this.hasBacklog()) void this.lookForOthers();
    }, OTHERS_EVERY_MS).unref();
  }

  private async lookForOthers(): Promise<void> {
    this.exchanges++;
    try {
      const types = new Set(this.waiting.map(({ eventType }) => eventType));
      // In front: their turn is now.
      this.waiting.unshift(...(await this.ends.claimOthers([...types])));
    } catch {
      // The next exchange meets the same trouble, and tells of it.
    }
    this.exchanges--;
    this.move();
  }

  // No limit to the tries: what is held is bounded, and settling is safe however late, for the lease token decides.
  private pauseAfter(error: unknown, finished: readonly Finished[]): void {
    if (this.abandoned) return;
    this.finished.unshift(...finished);
    const waitMs = this.ends.failed(error);
    this.pause ??= setTimeout(() => {
      this.pause = undefined;
      this.move();
    }, waitMs).unref();
  }

  /** Takes a place: handles this event, then whatever waits. Frees it when nothing does. */
  private async work(event: ClaimedEvent): Promise<void> {
    this.running++;
    for (let next: ClaimedEvent | undefined = event; next !== undefined;) {
      const settlement = await this.ends.handle(next);
      if (settlement !== undefined && !this.abandoned)
        this.finished.push({ event: next, settlement });
      this.moveSoon();
      next = this.waiting.shift();
    }
    this.running--;
  }

  /** In the next turn of the event loop, so that listeners that finish together are settled together. */
  private moveSoon(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    setImmediate(() => {
      this.scheduled = false;
      this.move();
    });
  }
}
