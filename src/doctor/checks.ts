import type { Check } from './check.js';
import { autovacuum } from './checks/autovacuum.js';
import { clock } from './checks/clock.js';
import { connections } from './checks/connections.js';
import { constraints } from './checks/constraints.js';
import { deadLetters } from './checks/dead-letters.js';
import { deadTuples } from './checks/dead-tuples.js';
import { durability } from './checks/durability.js';
import { farFuture } from './checks/far-future.js';
import { functionGrants } from './checks/function-grants.js';
import { functions } from './checks/functions.js';
import { gates } from './checks/gates.js';
import { indexes } from './checks/indexes.js';
import { isolation } from './checks/isolation.js';
import { leases } from './checks/leases.js';
import { listenerNames } from './checks/listener-names.js';
import { longTransactions } from './checks/long-transactions.js';
import { overdue } from './checks/overdue.js';
import { ownRights } from './checks/own-rights.js';
import { pgbossAccess } from './checks/pgboss-access.js';
import { pooler } from './checks/pooler.js';
import { preparedTransactions } from './checks/prepared-transactions.js';
import { readOnly } from './checks/read-only.js';
import { relayVersions } from './checks/relay-versions.js';
import { relays } from './checks/relays.js';
import { replicationSlots } from './checks/replication-slots.js';
import { retention } from './checks/retention.js';
import { rowLevelSecurity } from './checks/row-level-security.js';
import { schemaVersion } from './checks/schema-version.js';
import { tableGrants } from './checks/table-grants.js';
import { ticks } from './checks/ticks.js';
import { timeouts } from './checks/timeouts.js';
import { unheard } from './checks/unheard.js';

/** Every check, in the order they are made and told. */
export const CHECKS: readonly Check[] = [
  schemaVersion,
  indexes,
  constraints,
  functions,
  tableGrants,
  functionGrants,
  rowLevelSecurity,
  ownRights,
  pgbossAccess,
  durability,
  autovacuum,
  isolation,
  readOnly,
  timeouts,
  connections,
  clock,
  pooler,
  longTransactions,
  preparedTransactions,
  replicationSlots,
  deadTuples,
  relays,
  relayVersions,
  listenerNames,
  ticks,
  overdue,
  unheard,
  deadLetters,
  leases,
  farFuture,
  retention,
  gates,
];
