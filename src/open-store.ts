import { OutboxError } from './event/outbox-error.js';
import type { ClientConfig } from 'pg';
import { errorText } from './event/error-text.js';
import { InboxTable } from './inbox/inbox-table.js';
import type { ResolvedOptions } from './outbox-options.js';
import type { Log } from './relay/log.js';
import { BOSS_SCHEMA, openBoss, type BossDatabase } from './relay/open-boss.js';
import { queueName } from './relay/queue-name.js';
import type { WakeChannel } from './relay/wake-channel.js';
import type { Ticks } from './relay/relay.worker.js';
import { IntervalTicks, PgBossTicks } from './relay/ticks.js';
import { migrate } from './schema/migrate.js';
import type { OutboxStore } from './store/outbox-store.js';
import { openPool } from './store/postgres/open-pool.js';
import { ended, type PgPool } from './store/postgres/pg-pool.js';
import { PgWakeChannel } from './store/postgres/pg-wake-channel.js';
import { PostgresOutboxStore } from './store/postgres/postgres-outbox-store.js';
import { sqlNames, type SqlNames } from './store/postgres/sql-names.js';
import { isTransactionPooler } from './store/postgres/transaction-pooler.js';
import { RpcAnnouncer } from './store/supabase/rpc-announcer.js';
import { openClient, type SupabaseClientLike } from './store/supabase/supabase-client.js';
import { SupabaseOutboxStore } from './store/supabase/supabase-outbox-store.js';
import { SupabaseRpc } from './store/supabase/supabase-rpc.js';

/** The store of the options, and what belongs to it. */
export interface OpenedStore {
  readonly store: OutboxStore;
  /** Migrates or checks, until it has succeeded once. */
  readonly prepare: () => Promise<void>;
  /** How processes wake each other; `undefined` where the store has no way. */
  readonly wakeChannel: WakeChannel | undefined;
  /** `undefined` where work cannot be in one transaction with its record. */
  readonly inbox: InboxTable | undefined;
  /** A connection to the database the events rest in, if there is one. */
  readonly database: OpenedDatabase | undefined;
}

/** For whoever looks at the database itself. */
export interface OpenedDatabase {
  readonly pool: PgPool;
  /** How its connections are made, if that is known. */
  readonly clientConfig: ClientConfig | undefined;
  /** Where the outbox's own pg-boss is in it; `undefined`: the clock is elsewhere. */
  readonly bossSchema: string | undefined;
}

export function openStore(options: ResolvedOptions, log: Log): OpenedStore {
  if (options.store !== undefined) {
    const { store } = options;
    return {
      store,
      prepare: untilDone(() => store.check()),
      wakeChannel: undefined,
      inbox: undefined,
      database: undefined,
    };
  }
  if (options.supabase !== undefined) return openSupabase(options, options.supabase, log);
  const names = sqlNames(options.schema, options.table);
  const { pool, clientConfig, close } = poolOf(options, log);
  const wakeChannel = clientConfig && wakeChannelOf(pool, clientConfig, names, log);
  const store = new PostgresOutboxStore(pool, names, async () => {
    await wakeChannel?.close();
    await close();
  });
  const prepare = async (): Promise<void> => {
    if (!options.migrate) return store.check();
    await migrateLoudly(pool, names, log);
  };
  const inbox = new InboxTable(pool, names);
  const own = options.boss === undefined && options.bossConnectionString === undefined;
  const database = { pool, clientConfig, bossSchema: own ? BOSS_SCHEMA : undefined };
  return { store, prepare: untilDone(prepare), wakeChannel, inbox, database };
}

/** Events go over the Data API; beside it a connection of the relay's, if it has one, for wakes and migrations. */
function openSupabase(
  options: ResolvedOptions,
  supabase: NonNullable<ResolvedOptions['supabase']>,
  log: Log,
): OpenedStore {
  const names = sqlNames(options.schema, options.table);
  const side =
    options.bossConnectionString === undefined
      ? undefined
      : ownPool(options.bossConnectionString, log);
  let opening: Promise<SupabaseClientLike> | undefined;
  const client = async (): Promise<SupabaseClientLike> => {
    if ('schema' in supabase) return supabase;
    opening ??= openClient(supabase);
    return opening;
  };
  const rpc = new SupabaseRpc(client, names);
  const wakeChannel =
    side === undefined
      ? new RpcAnnouncer(rpc, names)
      : wakeChannelOf(side.pool, side.clientConfig, names, log);
  const store = new SupabaseOutboxStore(rpc, names, async () => {
    await wakeChannel.close();
    await side?.close();
  });
  const prepare = async (): Promise<void> => {
    if (options.migrate && side !== undefined) await migrateLoudly(side.pool, names, log);
    await store.check();
  };
  const database = side && {
    pool: side.pool,
    clientConfig: side.clientConfig,
    bossSchema: BOSS_SCHEMA,
  };
  return { store, prepare: untilDone(prepare), wakeChannel, inbox: undefined, database };
}

async function migrateLoudly(pool: PgPool, names: SqlNames, log: Log): Promise<void> {
  const { to, applied } = await migrate(pool, names);
  if (applied.length > 0)
    log.log(`migrated ${names.events} to version ${to}: ${applied.join(', ')}`);
}

function wakeChannelOf(
  pool: PgPool,
  clientConfig: ClientConfig,
  names: SqlNames,
  log: Log,
): WakeChannel {
  if (!isTransactionPooler(clientConfig)) return new PgWakeChannel(pool, clientConfig, names);
  log.warn(
    'the connection leads to a transaction-mode pooler (port 6543), where LISTEN does not work: what another process ' +
      'enqueues is found by the tick, within 15 s. Everything else works. The direct connection, or port 5432 of the ' +
      'pooler (session mode), has no such delay',
  );
  return new PgWakeChannel(pool, undefined, names);
}

function untilDone(step: () => Promise<void>): () => Promise<void> {
  let done = false;
  return async () => {
    if (done) return;
    await step();
    done = true;
  };
}

/** What calls the caretaker every 15 seconds: pg-boss where there is one or a database for it, else a timer. */
export async function openTicks(
  options: ResolvedOptions,
  onTick: () => Promise<void>,
  log: Log,
): Promise<Ticks> {
  const queue = queueName(options);
  if (options.boss !== undefined) return new PgBossTicks(options.boss, queue, onTick, log);
  const database = bossDatabase(options);
  if (database === undefined) return new IntervalTicks(onTick);

  const { boss, close } = await openBoss(database, sayOnceAMinute(log));
  const ticks = new PgBossTicks(boss, queue, onTick, log);
  return { start: () => ticks.start(), stop: close };
}

interface UsedPool {
  readonly pool: PgPool;
  /** For a connection of our own beside it. */
  readonly clientConfig: ClientConfig | undefined;
  readonly close: () => Promise<void>;
}

function poolOf({ pool, connectionString }: ResolvedOptions, log: Log): UsedPool {
  if (pool !== undefined) {
    // A pg pool carries what its clients are made of. One of its own connections is not ours to keep.
    const clientConfig = 'options' in pool ? (pool.options as ClientConfig) : undefined;
    return { pool, clientConfig, close: async () => {} };
  }
  if (connectionString === undefined) {
    throw new OutboxError('SETUP', 'no store, pool or connectionString');
  }
  return ownPool(connectionString, log);
}

function ownPool(connectionString: string, log: Log): UsedPool & { clientConfig: ClientConfig } {
  const own = openPool(connectionString, (error) => {
    log.debug(`an idle connection broke, the pool goes on: ${errorText(error)}`);
  });
  return { pool: own, clientConfig: own.options, close: () => ended(own.end()) };
}

function bossDatabase({
  bossConnectionString,
  connectionString,
  pool,
}: ResolvedOptions): BossDatabase | undefined {
  const url = bossConnectionString ?? connectionString;
  if (url !== undefined) return { connectionString: url };
  return pool && { pool };
}

function sayOnceAMinute(log: Log): (error: unknown) => void {
  let lastSaid = -Infinity;
  return (error) => {
    const now = performance.now();
    if (now - lastSaid < 60_000) return;
    lastSaid = now;
    log.warn(`pg-boss reports trouble (said at most once a minute): ${errorText(error)}`);
  };
}
