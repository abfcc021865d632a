/**
 * How processes wake each other's relays. A courtesy, never the truth: a wake that gets lost costs at most one tick.
 */
export interface WakeChannel {
  /** Tells the relays of other processes that something may be due. Returns at once, and never fails. */
  announce(): void;
  /** Calls `onWake` for every announcement, and after each time the connection was down. Never fails. */
  listen(onWake: () => void): void;
  close(): Promise<void>;
}
