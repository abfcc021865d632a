import type { ClientConfig } from 'pg';

/** Supabase's pooler in transaction mode, shared (Supavisor) or dedicated (PgBouncer). */
const TRANSACTION_MODE_PORT = 6543;

/**
 * Whether a connection leads to a pooler in transaction mode. There each transaction may have another server session:
 * what belongs to a session (LISTEN) is lost. Known by its port, for a pooler does not say what it is.
 */
export function isTransactionPooler({ connectionString, port }: ClientConfig): boolean {
  return Number(portOf(connectionString) ?? port) === TRANSACTION_MODE_PORT;
}

function portOf(connectionString: string | undefined): string | undefined {
  if (connectionString === undefined || !URL.canParse(connectionString)) return undefined;
  const { port, searchParams } = new URL(connectionString);
  return searchParams.get('port') ?? (port === '' ? undefined : port);
}
