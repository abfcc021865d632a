import { AsyncLocalStorage } from 'node:async_hooks';
import type { Conveyor } from './conveyor.js';
import type { Relay } from './relay.js';
import { TICK_MS } from './ticks.js';

// After an enqueue in a transaction whose commit cannot be seen: look again for a while, ever more rarely.
// In milliseconds from the enqueue.
const LOOK_AGAIN_MS = [10, 25, 50, 100, 200, 400, 800, 1_600, 3_200];

/**
 * Wakes the relay: by an enqueue in this process, by the tick, at a moment when something falls due. Awake, the
 * relay works until nothing is due any more.
 */
export class Pump {
  private conveyor: Conveyor | undefined;
  private readonly timers = new Set<NodeJS.Timeout>();
  // A wake comes from somewhere, e.g. an HTTP request; what it sets going must not run in that request's async context.
  private readonly detached = AsyncLocalStorage.snapshot();

  constructor(
    private readonly relay: Relay,
    /** `false` in a process that does not relay: nothing wakes it. */
    private readonly enabled: boolean,
  ) {
    relay.onDueIn = (delayMs) => this.wakeIn(delayMs);
  }

  /** Something may be due: look at once. */
  wake(): void {
    if (!this.enabled || !this.relay.isOpen) return;
    this.conveyor ??= this.relay.openConveyor();
    this.detached(() => this.conveyor?.feed());
  }

  /** Something will be due in so many milliseconds. What is due after the next tick is the tick's. */
  wakeIn(delayMs: number): void {
    if (!this.enabled || this.relay.isStopping || delayMs > TICK_MS) return;
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      this.wake();
    }, delayMs);
    timer.unref();
    this.timers.add(timer);
  }

  /** Something will be due as soon as a transaction commits, which cannot be seen from here. */
  wakeAfterCommit(): void {
    for (const delayMs of LOOK_AGAIN_MS) this.wakeIn(delayMs);
  }

  stop(): void {
    for (const timer of this.timers) clearTimeout(timer);
    this.timers.clear();
  }
}
