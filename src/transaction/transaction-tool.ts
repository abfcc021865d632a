import { OutboxError } from '../event/outbox-error.js';
import type { SqlExecutor } from '../store/outbox-store.js';

/** A transaction somebody else has begun and will end. */
export interface OpenTransaction {
  /** Runs SQL inside it. */
  readonly executor: SqlExecutor;
  /**
   * Calls back when it has ended, by commit or rollback; once for the same callback, however often it is handed in.
   * @returns `false` if the tool does not tell
   */
  readonly onEnd: (callback: () => void) => boolean;
}

/** A tool as the message of a refusal names it. */
export interface Named {
  /** What the user is to pass as `tx`. */
  readonly whatToPass: string;
}

/** How transactions of one tool are recognised and used: by their shape, never by importing the tool. */
export interface TransactionTool extends Named {
  /** Whether this is the tool's at all, be it a transaction or not: the tool then says what is wrong with it. */
  recognises(candidate: Shape): boolean;
  /**
   * @param named the tool that lies above this one, if the user knows only that
   * @throws OutboxError `INVALID_ARGUMENT` if it is no transaction, or one that is known to have ended
   */
  open(candidate: Shape, named?: Named): OpenTransaction | Promise<OpenTransaction>;
}

/** An object, or a function with properties, of which nothing is known. */
export type Shape = Readonly<Record<string, unknown>>;

export function hasMethods(candidate: Shape, ...names: string[]): boolean {
  return names.every((name) => typeof candidate[name] === 'function');
}

export function neverTold(): boolean {
  return false;
}

/** @param problem what `tx` is, as the rest of a sentence that begins with "tx" */
export function refusal(problem: string, { whatToPass }: Named): OutboxError {
  return new OutboxError('INVALID_ARGUMENT', `tx ${problem}: pass ${whatToPass}`);
}

export function notOpen(tool: Named, cause?: unknown): OutboxError {
  const error = refusal('has no open transaction (none was begun, or it has ended)', tool);
  if (cause !== undefined) error.cause = cause;
  return error;
}
