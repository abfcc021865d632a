/** Who waits for the end of which transaction: each is watched once, and each callback called once. */
export class EndWatch<Transaction extends object> {
  private readonly waiting = new WeakMap<Transaction, Set<() => void>>();

  /** @param watch how to watch one; calls `ended` once */
  constructor(private readonly watch: (transaction: Transaction, ended: () => void) => void) {}

  add(transaction: Transaction, callback: () => void): void {
    const waiting = this.waiting.get(transaction);
    if (waiting !== undefined) {
      waiting.add(callback);
      return;
    }
    const callbacks = new Set([callback]);
    this.waiting.set(transaction, callbacks);
    this.watch(transaction, () => {
      this.waiting.delete(transaction);
      for (const each of callbacks) each();
    });
  }
}
