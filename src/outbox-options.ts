import { DEFAULT_MAX_PAYLOAD_BYTES } from './event/payload.js';
import { assertKnownKeys } from './event/known-keys.js';
import { invalid } from './event/outbox-error.js';
import { DEFAULT_RETRY_POLICY, type RetryPolicy } from './event/retry-policy.js';
import type { RelaySettings } from './relay/relay-settings.js';
import type { Retention } from './relay/pruner.js';
import type { TickBoss } from './relay/ticks.js';
import { OutboxStore } from './store/outbox-store.js';
import { assertConnectionString } from './store/postgres/connection-string.js';
import type { PgPool } from './store/postgres/pg-pool.js';
import { DEFAULT_SCHEMA, DEFAULT_TABLE } from './store/postgres/sql-names.js';
import type { SupabaseClientLike, SupabaseProject } from './store/supabase/supabase-client.js';
import { assertSupabase } from './store/supabase/supabase-option.js';
import type { CurrentTransaction } from './transaction/chosen-transaction.js';

/** How often an event is tried, and how long it rests in between. */
export interface RetryOptions {
  /** Attempts allowed, 1 to 100: the last failure makes a dead letter. Default 5. */
  readonly maxRetries?: number;
  /** Milliseconds to wait after failure number `retryCount` (1, 2, …). Default 2^n minutes: 2, 4, 8, 16. */
  readonly backoff?: (retryCount: number) => number;
  /** No wait is longer, in milliseconds. Default 24 hours. */
  readonly maxBackoffMs?: number;
  /** Part of the wait left to chance, 0 to 1, so that events that failed together do not come back together. Default 0. */
  readonly jitter?: number;
}

export interface RelayOptions {
  /** Events taken with one claim, 1 to 1,000. More is faster; after a crash, all that were taken count a failed attempt. Default 100. */
  readonly batchSize?: number;
  /** Events delivered at the same time in this process, 1 to 1,000. Default 10. */
  readonly concurrency?: number;
  /** How long a claimed event is held without a sign of life, in milliseconds, 1,000 or more. It is renewed while a listener works. Default 60,000. */
  readonly leaseMs?: number;
  /** How long the listeners of one event may take, in milliseconds. Default 30,000. */
  readonly listenerTimeoutMs?: number;
  /** How long a shutdown waits for listeners at work, in milliseconds. Default 10,000. */
  readonly shutdownTimeoutMs?: number;
  /** How long an event may wait for somebody to listen to its type before it becomes a dead letter, in milliseconds. Default 24 hours. */
  readonly unheardGraceMs?: number;
  /** The application's own pg-boss, started. Default: the outbox opens one (schema `pgboss`) where events rest. */
  readonly boss?: TickBoss;
  /** Where the outbox's own pg-boss runs, if events rest elsewhere than in `connectionString` or `pool`. */
  readonly connectionString?: string;
}

export interface RetentionOptions {
  /** How long completed events are kept, in milliseconds; `false` keeps them. Default 7 days. */
  readonly completedMs?: number | false;
  /** How long dead letters are kept, in milliseconds, not less than `completedMs`; `false` keeps them. Default 90 days. */
  readonly failedMs?: number | false;
  /**
   * How long the inbox remembers that a consumer has done an event, in milliseconds; `false` for ever. Events that can
   * still be delivered (a dead letter that may be redriven) are remembered as long as they are there. Default 30 days.
   */
  readonly inboxMs?: number | false;
}

/** Exactly one of `connectionString`, `pool`, `supabase` and `store` says where events rest. */
export interface OutboxModuleOptions {
  /** PostgreSQL, e.g. `process.env.DATABASE_URL`: the outbox opens a pool of its own. */
  readonly connectionString?: string;
  /** The application's `pg` pool. It stays yours: the outbox neither ends it nor listens to its errors. */
  readonly pool?: PgPool;
  /**
   * A Supabase project over its Data API: its URL and secret key, or a supabase-js client made with that key. The relay
   * ticks on a PostgreSQL connection if `relay.connectionString` gives one, else on a timer.
   */
  readonly supabase?: SupabaseProject | SupabaseClientLike;
  /** Any store, e.g. `new InMemoryOutboxStore()` in a test. */
  readonly store?: OutboxStore;
  /** Default `public`. */
  readonly schema?: string;
  /** Ends in `_events`; functions and further tables are named after what stands before. Default `outbox_events`. */
  readonly table?: string;
  /** Apply the migrations at start. Default `false`: the schema is checked, and the error says what to run. */
  readonly migrate?: boolean;
  readonly retry?: RetryOptions;
  /** `false`: this process stores events and does not deliver them. */
  readonly relay?: false | RelayOptions;
  readonly retention?: RetentionOptions;
  /**
   * What an enqueue without `tx` does when the store fails: `emit` the event in memory, once and without guarantee,
   * marked `_outboxFailed: true`; or `throw`. Default `emit`.
   */
  readonly onStoreFailure?: 'emit' | 'throw';
  /** Largest payload, in bytes of JSON. Default 1 MiB. */
  readonly maxPayloadBytes?: number;
  /**
   * How to find the transaction that the calling code runs in, for calls without `tx`, e.g.
   * `() => (txHost.isTransactionActive() ? txHost.tx : undefined)`. Default: calls without `tx` are in none.
   */
  readonly currentTransaction?: CurrentTransaction | undefined;
  /**
   * Traces and metrics, where `@opentelemetry/api` is installed and its SDK was started before the application; `false`
   * turns them off. Default `true`.
   */
  readonly telemetry?: boolean;
}

/** The options, complete and checked. */
export interface ResolvedOptions {
  readonly connectionString: string | undefined;
  readonly pool: PgPool | undefined;
  readonly supabase: SupabaseProject | SupabaseClientLike | undefined;
  readonly store: OutboxStore | undefined;
  readonly schema: string;
  readonly table: string;
  readonly migrate: boolean;
  readonly relaying: boolean;
  readonly relay: RelaySettings;
  readonly boss: TickBoss | undefined;
  readonly bossConnectionString: string | undefined;
  readonly retention: Retention;
  readonly onStoreFailure: 'emit' | 'throw';
  readonly maxPayloadBytes: number;
  readonly currentTransaction: CurrentTransaction | undefined;
  readonly telemetry: boolean;
}

const DAY_MS = 86_400_000;

/** Every default, in one place. */
export const DEFAULTS = Object.freeze({
  schema: DEFAULT_SCHEMA,
  table: DEFAULT_TABLE,
  migrate: false,
  onStoreFailure: 'emit',
  maxPayloadBytes: DEFAULT_MAX_PAYLOAD_BYTES,
  telemetry: true,
  retry: DEFAULT_RETRY_POLICY,
  relay: Object.freeze({
    batchSize: 100,
    concurrency: 10,
    leaseMs: 60_000,
    listenerTimeoutMs: 30_000,
    shutdownTimeoutMs: 10_000,
    unheardGraceMs: DAY_MS,
  }),
  retention: Object.freeze({
    completedMs: 7 * DAY_MS,
    failedMs: 90 * DAY_MS,
    inboxMs: 30 * DAY_MS,
  }),
} as const);

const KEYS = {
  root: [
    'connectionString',
    'pool',
    'supabase',
    'store',
    'schema',
    'table',
    'migrate',
    'retry',
    'relay',
    'retention',
    'onStoreFailure',
    'maxPayloadBytes',
    'currentTransaction',
    'telemetry',
  ],
  retry: ['maxRetries', 'backoff', 'maxBackoffMs', 'jitter'],
  relay: [...Object.keys(DEFAULTS.relay), 'boss', 'connectionString'],
  retention: ['completedMs', 'failedMs', 'inboxMs'],
} as const;

/**
 * Fills in the defaults and refuses what cannot be meant.
 * @throws OutboxError `INVALID_ARGUMENT` that names the option, the value and the fix
 */
export function resolveOptions(options: OutboxModuleOptions): ResolvedOptions {
  assertObject('options', options);
  assertKnownKeys('', options, KEYS.root);
  const {
    retry = {},
    relay = {},
    retention = {},
    onStoreFailure = DEFAULTS.onStoreFailure,
  } = options;
  assertPlace(options);
  assertMigratable(options);
  if (!['emit', 'throw'].includes(onStoreFailure)) {
    throw invalid(`onStoreFailure must be 'emit' or 'throw', got ${shown(onStoreFailure)}`);
  }
  return Object.freeze({
    connectionString: options.connectionString,
    pool: options.pool,
    supabase: options.supabase,
    store: options.store,
    schema: options.schema ?? DEFAULTS.schema,
    table: options.table ?? DEFAULTS.table,
    migrate: boolean('migrate', options.migrate ?? DEFAULTS.migrate),
    relaying: relay !== false,
    ...resolveRelay(relay === false ? {} : relay, resolveRetry(retry)),
    retention: resolveRetention(retention),
    onStoreFailure,
    maxPayloadBytes: whole(
      'maxPayloadBytes',
      options.maxPayloadBytes ?? DEFAULTS.maxPayloadBytes,
      1,
      256 * 1_048_576,
    ),
    currentTransaction: optionalFunction('currentTransaction', options.currentTransaction),
    telemetry: boolean('telemetry', options.telemetry ?? DEFAULTS.telemetry),
  });
}

function assertPlace(options: OutboxModuleOptions): void {
  const given = (['connectionString', 'pool', 'supabase', 'store'] as const).filter(
    (key) => options[key] !== undefined,
  );
  if (given.length !== 1) {
    const found =
      given.length === 0 ? 'none (is DATABASE_URL set?)' : `${given.join(' and ')}: leave one`;
    throw invalid(
      `exactly one of connectionString, pool, supabase and store says where events rest, got ${found}`,
    );
  }
  const { connectionString, pool, supabase, store } = options;
  if (connectionString !== undefined) assertConnectionString('connectionString', connectionString);
  if (pool !== undefined && !(hasMethod(pool, 'query') && hasMethod(pool, 'connect'))) {
    throw invalid('pool must be a pg Pool (with query and connect)');
  }
  if (supabase !== undefined) assertSupabase(supabase);
  if (store !== undefined && !hasMethod(store, 'claim'))
    throw invalid('store must be an OutboxStore');
}

/** The Data API cannot change a schema. */
function assertMigratable({ supabase, migrate, relay }: OutboxModuleOptions): void {
  if (supabase === undefined || migrate !== true) return;
  if (relay !== undefined && relay !== false && relay.connectionString !== undefined) return;
  throw invalid(
    'migrate: true with supabase needs a PostgreSQL connection: give relay.connectionString, or run ' +
      '"npx nestjs-outbox-relay migrate --connection <URL of the project\'s database>" and leave migrate out',
  );
}

function optionalFunction<T>(name: string, value: T): T {
  if (value === undefined || typeof value === 'function') return value;
  throw invalid(`${name} must be a function that answers a transaction, got ${shown(value)}`);
}

function resolveRetry(retry: RetryOptions): RetryPolicy {
  assertObject('retry', retry);
  assertKnownKeys('retry.', retry, KEYS.retry);
  const backoff = retry.backoff ?? DEFAULTS.retry.backoff;
  if (typeof backoff !== 'function')
    throw invalid(
      `retry.backoff must be a function from a retry count to milliseconds, got ${shown(backoff)}`,
    );
  return Object.freeze({
    maxRetries: whole('retry.maxRetries', retry.maxRetries ?? DEFAULTS.retry.maxRetries, 1, 100),
    backoff,
    maxBackoffMs: whole(
      'retry.maxBackoffMs',
      retry.maxBackoffMs ?? DEFAULTS.retry.maxBackoffMs,
      0,
      365 * DAY_MS,
    ),
    jitter: between('retry.jitter', retry.jitter ?? DEFAULTS.retry.jitter, 0, 1),
  });
}

function resolveRelay(
  relay: RelayOptions,
  retry: RetryPolicy,
): Pick<ResolvedOptions, 'relay' | 'boss' | 'bossConnectionString'> {
  assertObject('relay', relay, 'false or an object');
  assertKnownKeys('relay.', relay, KEYS.relay);
  const { boss, connectionString } = relay;
  if (boss !== undefined && !(hasMethod(boss, 'work') && hasMethod(boss, 'createQueue'))) {
    throw invalid('relay.boss must be a started PgBoss instance');
  }
  if (connectionString !== undefined) {
    assertConnectionString('relay.connectionString', connectionString);
  }
  if (boss !== undefined && connectionString !== undefined) {
    throw invalid('relay.boss and relay.connectionString exclude each other: give one');
  }
  const given = { ...DEFAULTS.relay, ...definedOnly(relay) };
  return {
    boss,
    bossConnectionString: connectionString,
    relay: Object.freeze({
      retry,
      batchSize: whole('relay.batchSize', given.batchSize, 1, 1_000),
      concurrency: whole('relay.concurrency', given.concurrency, 1, 1_000),
      leaseMs: whole('relay.leaseMs', given.leaseMs, 1_000, DAY_MS),
      listenerTimeoutMs: whole('relay.listenerTimeoutMs', given.listenerTimeoutMs, 1, DAY_MS),
      shutdownTimeoutMs: whole('relay.shutdownTimeoutMs', given.shutdownTimeoutMs, 0, DAY_MS),
      unheardGraceMs: whole('relay.unheardGraceMs', given.unheardGraceMs, 0, 365 * DAY_MS),
    }),
  };
}

function resolveRetention(retention: RetentionOptions): Retention {
  assertObject('retention', retention);
  assertKnownKeys('retention.', retention, KEYS.retention);
  const { completedMs, failedMs, inboxMs } = { ...DEFAULTS.retention, ...definedOnly(retention) };
  const resolved = {
    completedMs: duration('retention.completedMs', completedMs),
    failedMs: duration('retention.failedMs', failedMs),
    inboxMs: duration('retention.inboxMs', inboxMs),
  };
  if (
    resolved.failedMs !== false &&
    (resolved.completedMs === false || resolved.failedMs < resolved.completedMs)
  ) {
    throw invalid(
      `retention.failedMs (${resolved.failedMs}) must not be shorter than retention.completedMs (${String(resolved.completedMs)}): ` +
        'dead letters are kept at least as long as what succeeded',
    );
  }
  return Object.freeze(resolved);
}

function assertObject(name: string, value: unknown, wanted = 'an object'): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalid(`${name} must be ${wanted}, got ${shown(value)}`);
  }
}

function whole(name: string, value: unknown, min: number, max: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max)
    return value;
  throw invalid(`${name} must be a whole number from ${min} to ${max}, got ${shown(value)}`);
}

function between(name: string, value: unknown, min: number, max: number): number {
  if (typeof value === 'number' && value >= min && value <= max) return value;
  throw invalid(`${name} must be a number from ${min} to ${max}, got ${shown(value)}`);
}

function duration(name: string, value: unknown): number | false {
  return value === false ? false : whole(name, value, 0, 100 * 365 * DAY_MS);
}

function boolean(name: string, value: unknown): boolean {
  if (typeof value === 'boolean') return value;
  throw invalid(`${name} must be true or false, got ${shown(value)}`);
}

function definedOnly<T extends object>(given: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== undefined),
  ) as never;
}

function hasMethod(value: unknown, method: string): boolean {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof (value as Record<string, unknown>)[method] === 'function'
  );
}

function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : String(value);
}
