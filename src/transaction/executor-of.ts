import { invalid } from '../event/outbox-error.js';
import type { SqlExecutor } from '../store/outbox-store.js';

/** What `tx` may be: an open transaction of a tool this library knows. */
export type OutboxTransaction = PgTransaction;

/** A `pg` client between `BEGIN` and `COMMIT`. */
export interface PgTransaction {
  query(text: string, values: unknown[]): Promise<{ rows: unknown[] }>;
}

const WHAT_TO_PASS = 'pass the pg client on which you ran BEGIN';

/**
 * The executor that runs inside the caller's open transaction. Never another connection, never a guess.
 * @throws OutboxError `INVALID_ARGUMENT` that says what to pass
 */
export async function executorOf(tx: OutboxTransaction): Promise<SqlExecutor> {
  const candidate = tx as unknown;
  if (
    typeof candidate !== 'object' ||
    candidate === null ||
    !('query' in candidate) ||
    typeof candidate.query !== 'function'
  ) {
    throw invalid(`tx is not a database client (no query method): ${WHAT_TO_PASS}`);
  }
  if ('totalCount' in candidate || 'idleCount' in candidate) {
    throw invalid(`tx is a pool, whose every query may take another connection: ${WHAT_TO_PASS}`);
  }
  await assertOpen(tx);
  return tx;
}

async function assertOpen(client: PgTransaction): Promise<void> {
  // pg >= 8.17 knows from the protocol: idle, in a transaction, or in a failed one.
  const status =
    'getTransactionStatus' in client && typeof client.getTransactionStatus === 'function'
      ? ((client.getTransactionStatus as () => string | null)() ?? 'I')
      : await askServer(client);
  if (status === 'I')
    throw invalid(`tx has no open transaction (none was begun, or it has ended): ${WHAT_TO_PASS}`);
}

// SAVEPOINT is an error outside a transaction block, and harmless inside.
async function askServer(client: PgTransaction): Promise<'I' | 'T'> {
  try {
    const answer = (await client.query('SAVEPOINT outbox_probe', [])) as unknown;
    await client.query('RELEASE SAVEPOINT outbox_probe', []);
    // A query method that answers something else is an ORM's, and would answer so to the enqueue too.
    if (!hasRows(answer)) throw invalid(`tx is not a pg client: ${WHAT_TO_PASS}`);
    return 'T';
  } catch (error) {
    const noTransaction =
      typeof error === 'object' && error !== null && 'code' in error && error.code === '25P01';
    if (noTransaction) return 'I';
    throw error;
  }
}

function hasRows(answer: unknown): boolean {
  return (
    typeof answer === 'object' && answer !== null && 'rows' in answer && Array.isArray(answer.rows)
  );
}
