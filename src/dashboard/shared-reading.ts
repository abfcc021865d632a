/**
 * Reads on behalf of everybody who looks at the same time: ten open dashboards are one reader. An answer is given out
 * for `freshForMs`; a reading that fails is not kept.
 */
export class SharedReading<T> {
  private last: { readonly startedAt: number; readonly answer: Promise<T> } | undefined;

  constructor(
    private readonly read: () => Promise<T>,
    private readonly freshForMs: number,
    private readonly now: () => number = () => performance.now(),
  ) {}

  async get(): Promise<T> {
    const { last } = this;
    if (last !== undefined && this.now() - last.startedAt < this.freshForMs) return last.answer;
    const reading = { startedAt: this.now(), answer: this.read() };
    this.last = reading;
    reading.answer.catch(() => {
      if (this.last === reading) this.last = undefined;
    });
    return reading.answer;
  }

  /** The next one looks again: something was changed from here. */
  forget(): void {
    this.last = undefined;
  }
}
