// The front door: a list of names.
export { OutboxModule } from './outbox.module.js';
export type { OutboxOptionsFactory } from './outbox.module-definition.js';
export {
  OutboxService,
  type Enqueued,
  type EnqueueManyItem,
  type EnqueueOptions,
  type OutboxServiceStats,
} from './outbox.service.js';
export {
  OutboxDeadLetters,
  type DiscardOptions,
  type ListDeadLettersOptions,
  type RedriveOptions,
} from './dead-letter/dead-letters.service.js';
export { OutboxInbox, type HandledEvent, type OnceOptions } from './inbox/inbox.service.js';
export {
  OutboxMonitor,
  type ActivityOptions,
  type ListEventsOptions,
  type MonitoredRelay,
} from './monitor/outbox.monitor.js';
export { OutboxHealth, type HealthReport, type HealthThresholds } from './monitor/outbox.health.js';
export type { RelayActivity } from './relay/relay.worker.js';
export { BootstrapPublisher, type ListGatesOptions } from './bootstrap/bootstrap.publisher.js';
export type { Gate, GateResult, GateRun } from './bootstrap/gate.js';
export {
  DeterministicGateError,
  GateClosedError,
  GateError,
  PublishFailedError,
  TransientGateError,
} from './bootstrap/gate-errors.js';
export { classifyFailure, type FailureClassifier } from './bootstrap/classify-failure.js';
export { chunk, MAX_BIND_PARAMETERS } from './bootstrap/chunk.js';
export type {
  OutboxModuleOptions,
  RelayOptions,
  RetentionOptions,
  RetryOptions,
} from './outbox-options.js';

export type {
  Delivered,
  OutboxContext,
  OutboxEventMap,
  PayloadOf,
} from './delivery/outbox-context.js';
export type { ListenerFailure } from './delivery/attempt.js';
export {
  OutboxEvent,
  type FailureOptions,
  type OutboxEventProps,
  type OutboxEventStatus,
  type PreviousLife,
} from './event/outbox-event.js';
export { exponentialBackoff, type RetryPolicy } from './event/retry-policy.js';
export { NonRetryableError, OutboxError, type OutboxErrorCode } from './event/outbox-error.js';
export { OUTBOX_DEAD_LETTER } from './event/event-type.js';
export type { OutboxPayload } from './event/payload.js';
export type { DeadLetterNotice } from './relay/reporter.js';
export type { Pruned } from './relay/pruner.js';
export type { TickBoss, TickJob } from './relay/ticks.js';

export {
  OutboxStore,
  type ClaimRequest,
  type ClaimedEvent,
  type DeadLetter,
  type DeadLetterFilter,
  type DeadLetterPage,
  type DeadLetterPageRequest,
  type EventPage,
  type EventPageRequest,
  type Lease,
  type ListedEvent,
  type NewEvent,
  type OutboxStats,
  type PruneRequest,
  type RedriveRequest,
  type SettledAndClaimed,
  type Settlement,
  type SqlExecutor,
  type StoredEvent,
} from './store/outbox-store.js';
export {
  ActivityStore,
  type Activity,
  type ActivityCount,
  type ActivityRequest,
  type KnownListener,
  type RelayReport,
  type RelayState,
} from './store/activity-store.js';
export {
  SentinelStore,
  type FailureKind,
  type GateLease,
  type GateName,
  type GateState,
  type Sentinel,
  type SentinelClaim,
  type SentinelClaimRequest,
  type SentinelFailure,
  type SentinelFilter,
  type SentinelStats,
} from './store/sentinel-store.js';
export type { PgClient, PgPool, PgQuery } from './store/postgres/pg-pool.js';
export type {
  SupabaseAnswer,
  SupabaseCall,
  SupabaseClientLike,
  SupabaseErrorLike,
  SupabaseProject,
  SupabaseSchema,
} from './store/supabase/supabase-client.js';
export type { CurrentTransaction, TransactionChoice } from './transaction/chosen-transaction.js';
export type { OutboxTransaction } from './transaction/outbox-transaction.js';
export type { DrizzleTransaction } from './transaction/drizzle.js';
export type { KnexTransaction } from './transaction/knex.js';
export type { KyselyTransaction } from './transaction/kysely.js';
export type { MikroOrmTransaction } from './transaction/mikro-orm.js';
export type { PgTransaction } from './transaction/pg.js';
export type { PostgresJsTransaction } from './transaction/postgres-js.js';
export type { PrismaTransaction } from './transaction/prisma.js';
export type { TypeOrmTransaction } from './transaction/typeorm.js';
export { migrateOutbox, outboxSql, type MigrateOptions } from './migrate-outbox.js';
export type { MigrationResult } from './schema/migrate.js';
