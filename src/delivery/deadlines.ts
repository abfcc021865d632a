/** Something that may take so long and not longer. */
export interface Limited {
  /** Its time is over. */
  timeOut(): void;
}

/**
 * The same limit for many things at a time, with one timer among them: they time out in the order they began. A timer
 * for each would be among the dearer parts of a delivery.
 */
export class Deadlines {
  /** Oldest first, each with its end by the process's steady clock. */
  private running = new Map<Limited, number>();
  private timer: NodeJS.Timeout | undefined;

  constructor(readonly limitMs: number) {}

  begin(limited: Limited): void {
    this.running.set(limited, performance.now() + this.limitMs);
    this.wait(this.limitMs);
  }

  end(limited: Limited): void {
    this.running.delete(limited);
    if (this.running.size > 0) return;
    clearTimeout(this.timer);
    this.timer = undefined;
    // Begun anew while it is empty: see LeaseKeeper.
    this.running = new Map();
  }

  private wait(ms: number): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.timeOutOldest();
    }, ms);
  }

  private timeOutOldest(): void {
    const now = performance.now();
    // A timer may fire a little early by the other clock.
    const over = [...this.running].filter(([, end]) => end - now < 1).map(([limited]) => limited);
    for (const limited of over) {
      this.running.delete(limited);
      limited.timeOut();
    }
    const [next] = this.running.values();
    if (next !== undefined) this.wait(next - now);
  }
}
