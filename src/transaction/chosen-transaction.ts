import { invalid, OutboxError } from '../event/outbox-error.js';
import { openTransaction, type OutboxTransaction } from './outbox-transaction.js';
import type { OpenTransaction } from './transaction-tool.js';

/** How a call says which transaction it is part of. */
export interface TransactionChoice {
  /**
   * Your open transaction: what is written is part of it, and any failure is thrown. `'none'`: deliberately outside,
   * whatever {@link CurrentTransaction} says. Default: the current transaction, if the module was told how to find it.
   */
  readonly tx?: OutboxTransaction | 'none' | undefined;
}

/** Answers the transaction that the calling code runs in; nothing if it runs in none. */
export type CurrentTransaction = () => OutboxTransaction | null | undefined;

/**
 * The transaction a call is to be part of; `undefined` for none.
 * @throws OutboxError `INVALID_ARGUMENT` for a `tx` that is no open transaction
 */
export async function chosenTransaction(
  choice: TransactionChoice,
  currentTransaction: CurrentTransaction | undefined,
): Promise<OpenTransaction | undefined> {
  const { tx } = choice;
  const given: unknown = tx;
  if (tx === 'none') return undefined;
  if (!('tx' in choice)) return openCurrent(currentTransaction?.());
  // What a forgotten variable holds would take the call out of the transaction without a word.
  if (tx === undefined || given === null)
    throw invalid(
      `tx is ${String(given)}: pass the open transaction, or leave tx out, or say 'none'`,
    );
  return openTransaction(tx);
}

async function openCurrent(
  current: OutboxTransaction | null | undefined,
): Promise<OpenTransaction | undefined> {
  if (current === undefined || current === null) return undefined;
  try {
    return await openTransaction(current);
  } catch (error) {
    // The caller has passed nothing: the option has.
    if (error instanceof OutboxError)
      error.message = `what the option currentTransaction answered as ${error.message}`;
    throw error;
  }
}
