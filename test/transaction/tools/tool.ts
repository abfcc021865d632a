import type { OutboxTransaction } from '../../../src/index.js';
import type { TestDatabase } from '../../support/database.js';
import type { PostgresMajor } from '../../../tools/postgres-cluster.js';

/** A database tool, and one of its ways to begin a transaction. */
export interface Tool {
  readonly name: string;
  /** Default 18. */
  readonly major?: PostgresMajor;
  /** What a refusal tells the user to pass. */
  readonly whatToPass: string;
  /** Whether the end of its transactions can be seen, so that the relay is woken at once. */
  readonly tellsItsEnd: boolean;
  open(database: TestDatabase): Promise<OpenTool>;
}

export interface OpenTool {
  /** Runs `work` in a transaction, the way the tool's users do: commits if it resolves, rolls back if it rejects. */
  transaction<Result>(work: (tx: OutboxTransaction) => Promise<Result>): Promise<Result>;
  /** The same within `tx`: a savepoint. */
  nested<Result>(
    tx: OutboxTransaction,
    work: (tx: OutboxTransaction) => Promise<Result>,
  ): Promise<Result>;
  /** Writes a row of the application's by the tool's own means. */
  insertQuote(tx: OutboxTransaction, id: number): Promise<unknown>;
  /** A statement that fails. */
  fail(tx: OutboxTransaction): Promise<unknown>;
  /** What a user might pass by mistake, and how the refusal calls it. */
  readonly mistakes: readonly Mistake[];
  close(): Promise<unknown>;
}

export type Mistake = readonly [what: string, thing: () => unknown, problem: string];
