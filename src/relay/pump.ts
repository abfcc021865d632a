import { AsyncLocalStorage } from 'node:async_hooks';
import type { Conveyor } from './conveyor.js';
import type { Relay } from './relay.js';
import { TICK_MS } from './ticks.js';
import type { WakeChannel } from './wake-channel.js';

// After an enqueue in a transaction whose end cannot be seen: look again for a while, ever more rarely.
// Milliseconds from one look to the next.
const LOOK_AGAIN_MS = [10, 15, 25, 50, 100, 200, 400, 800, 1_600];

// Wakes within the same 20 ms are one.
const SLOT_MS = 20;

// A relay with a backlog calls the others, once a second.
const CALL_OTHERS_EVERY_MS = 1_000;

/**
 * Wakes the relay: this process's own, or, where this process does not relay, those of others. By an enqueue, by the
 * tick, at a moment when something falls due. Awake, a relay works until nothing is due any more.
 */
export class Pump {
  private conveyor: Conveyor | undefined;
  private readonly slots = new Map<number, NodeJS.Timeout>();
  private looks = 0;
  private nextLook: NodeJS.Timeout | undefined;
  private lastCall = -Infinity;
  // A wake comes from somewhere, e.g. an HTTP request; what it sets going must not run in that request's async context.
  private readonly detached = AsyncLocalStorage.snapshot();

  constructor(
    private readonly relay: Relay,
    /** `false`: this process does not relay. */
    private readonly relaying: boolean,
    private readonly channel: WakeChannel | undefined,
  ) {
    relay.onDueIn = (delayMs) => this.wakeIn(delayMs);
    relay.onBacklog = () => this.callOthers();
  }

  /** Something may be due: look at once. */
  readonly wake = (): void => {
    if (!this.relaying) return this.channel?.announce();
    if (!this.relay.isOpen) return;
    this.conveyor ??= this.relay.openConveyor();
    this.detached(() => this.conveyor?.feed());
  };

  /** Something will be due in so many milliseconds. What is due after the next tick is the tick's. */
  wakeIn(delayMs: number): void {
    if (delayMs > TICK_MS || this.relay.isStopping) return;
    const slot = Math.ceil((performance.now() + delayMs) / SLOT_MS);
    if (this.slots.has(slot)) return;
    const timer = setTimeout(
      () => {
        this.slots.delete(slot);
        this.wake();
      },
      slot * SLOT_MS - performance.now(),
    );
    this.slots.set(slot, timer.unref());
  }

  /** Something will be due as soon as a transaction commits, which cannot be seen from here. */
  wakeAfterCommit(): void {
    this.looks = 0;
    if (this.nextLook === undefined) this.lookAgain();
  }

  /** From now on, other processes may wake this one. */
  listen(): void {
    this.channel?.listen(this.wake);
  }

  stop(): void {
    for (const timer of this.slots.values()) clearTimeout(timer);
    this.slots.clear();
    clearTimeout(this.nextLook);
  }

  private lookAgain(): void {
    const waitMs = LOOK_AGAIN_MS[this.looks++];
    this.nextLook = undefined;
    if (waitMs === undefined || this.relay.isStopping) return;
    this.nextLook = setTimeout(() => {
      this.wake();
      this.lookAgain();
    }, waitMs).unref();
  }

  private callOthers(): void {
    const now = performance.now();
    if (now - this.lastCall < CALL_OTHERS_EVERY_MS) return;
    this.lastCall = now;
    this.channel?.announce();
  }
}
