import type { OutboxTransaction } from './executor-of.js';

/** What a `pg` client (8.17 and newer) tells of its transaction. */
interface ObservableClient {
  getTransactionStatus(): string | null;
  on(event: 'drain' | 'end', listener: () => void): unknown;
  off(event: 'drain' | 'end', listener: () => void): unknown;
}

// Several events in one transaction need one callback.
const WATCHED = new WeakSet<object>();

/**
 * Calls back once when the transaction has ended, by commit or rollback.
 * @returns `false` if that cannot be seen from here
 */
export function onTransactionEnd(tx: OutboxTransaction, callback: () => void): boolean {
  if (!isObservable(tx)) return false;
  if (WATCHED.has(tx)) return true;
  WATCHED.add(tx);

  // `drain` comes after each answer that leaves no query waiting; the status is up to date by then.
  const check = (): void => {
    if (tx.getTransactionStatus() === 'I') ended();
  };
  const ended = (): void => {
    tx.off('drain', check);
    tx.off('end', ended);
    WATCHED.delete(tx);
    callback();
  };
  tx.on('drain', check);
  tx.on('end', ended);
  return true;
}

function isObservable(tx: object): tx is ObservableClient {
  return ['getTransactionStatus', 'on', 'off'].every(
    (method) => typeof (tx as Record<string, unknown>)[method] === 'function',
  );
}
