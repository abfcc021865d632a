import {
  Inject,
  Logger,
  Module,
  type DynamicModule,
  type OnApplicationShutdown,
  type OnModuleInit,
  type Provider,
} from '@nestjs/common';
import { DiscoveryModule, ModulesContainer } from '@nestjs/core';
import { EventEmitter2, EventEmitterReadinessWatcher } from '@nestjs/event-emitter';
import { BootstrapPublisher } from './bootstrap/bootstrap.publisher.js';
import { Publications } from './bootstrap/publications.js';
import { OutboxDeadLetters } from './dead-letter/dead-letters.js';
import type { Delivery } from './delivery/delivery.js';
import type { Emitter } from './delivery/emitter.js';
import { ListenerRegistry } from './delivery/listener-registry.js';
import { ListenersExplorer } from './delivery/listeners.explorer.js';
import { TracedDelivery } from './delivery/traced-delivery.js';
import { OutboxDoctor } from './doctor/outbox-doctor.js';
import { LONG_TRANSACTION_MS, PatientDatabase } from './doctor/patient.js';
import { OUTBOX_DEAD_LETTER } from './event/event-type.js';
import { errorText } from './event/error-text.js';
import { OutboxError } from './event/outbox-error.js';
import { OutboxInbox } from './inbox/inbox.service.js';
import { openStore, openTicks, type OpenedStore } from './open-store.js';
import { OutboxLifecycle, OutboxLifecycleModule } from './outbox.lifecycle.js';
import {
  ConfigurableOutboxModule,
  OUTBOX_MODULE_OPTIONS,
  type OUTBOX_ASYNC_OPTIONS,
  type OUTBOX_OPTIONS,
} from './outbox.module-definition.js';
import {
  resolveOptions,
  type OutboxModuleOptions,
  type ResolvedOptions,
} from './outbox-options.js';
import { OutboxService, type OutboxParts } from './outbox.service.js';
import { OutboxHealth } from './monitor/outbox.health.js';
import { OutboxMonitor } from './monitor/outbox.monitor.js';
import { ActivityCounter } from './relay/activity-counter.js';
import { Caretaker } from './relay/caretaker.js';
import { ALIVE_WITHIN_MS, Heartbeat } from './relay/heartbeat.js';
import { OutboxLogger } from './relay/outbox.logger.js';
import { Pruner } from './relay/pruner.js';
import { Pump } from './relay/pump.js';
import { Relay } from './relay/relay.js';
import { RelayWorker } from './relay/relay.worker.js';
import { Reporter, type DeadLetterNotice } from './relay/reporter.js';
import { OutboxStore } from './store/outbox-store.js';
import { openTelemetry } from './telemetry/open-telemetry.js';
import { NO_TELEMETRY, type Telemetry } from './telemetry/telemetry.js';
import { sqlNames } from './store/postgres/sql-names.js';

/** The token of the options, complete and checked. */
export const RESOLVED_OPTIONS = Symbol('outbox options');
const OPENED_STORE = Symbol('outbox store, opened');
const EMITTER = Symbol('outbox emitter');
const DELIVERY = Symbol('outbox delivery');
const TELEMETRY = Symbol('outbox telemetry');
const EXPLORE = Symbol('outbox listeners, explored once');
const PARTS = Symbol('outbox parts');

const logger = new OutboxLogger('Outbox');

/** Never rejects: whoever is told must not stop the relay. */
async function announce(emitter: Emitter, notice: DeadLetterNotice): Promise<void> {
  try {
    await emitter.emitAsync(OUTBOX_DEAD_LETTER, notice);
  } catch (error) {
    logger.error(`a listener of ${OUTBOX_DEAD_LETTER} failed: ${errorText(error)}`);
  }
}

const providers: Provider[] = [
  {
    provide: RESOLVED_OPTIONS,
    inject: [{ token: OUTBOX_MODULE_OPTIONS, optional: true }],
    useFactory: (options: OutboxModuleOptions | undefined) => {
      if (options !== undefined) return resolveOptions(options);
      throw new OutboxError(
        'SETUP',
        'OutboxModule has no options: import OutboxModule.forRoot({ … }) or forRootAsync in your root module, ' +
          'and nothing elsewhere: it is global',
      );
    },
  },
  {
    provide: OPENED_STORE,
    inject: [RESOLVED_OPTIONS],
    useFactory: (options: ResolvedOptions) => openStore(options, logger),
  },
  { provide: OutboxStore, inject: [OPENED_STORE], useFactory: ({ store }: OpenedStore) => store },
  {
    provide: EMITTER,
    inject: [{ token: EventEmitter2, optional: true }],
    useFactory: (emitter: Emitter | undefined): Emitter => {
      if (emitter !== undefined) return emitter;
      throw new OutboxError(
        'SETUP',
        'OutboxModule needs EventEmitterModule.forRoot() in the imports of your root module',
      );
    },
  },
  {
    provide: TELEMETRY,
    inject: [RESOLVED_OPTIONS],
    useFactory: async ({ telemetry, schema, table }: ResolvedOptions): Promise<Telemetry> =>
      telemetry ? openTelemetry(`${schema}.${table}`, logger) : NO_TELEMETRY,
  },
  ListenerRegistry,
  ListenersExplorer,
  ActivityCounter,
  {
    provide: EXPLORE,
    inject: [EMITTER, ListenersExplorer],
    useFactory: (emitter: Emitter, explorer: ListenersExplorer) => {
      let explored = false;
      return (): void => {
        if (!explored) explorer.explore(emitter);
        explored = true;
      };
    },
  },
  {
    provide: DELIVERY,
    inject: [RESOLVED_OPTIONS, EMITTER, ListenerRegistry, TELEMETRY],
    useFactory: (
      { relay }: ResolvedOptions,
      emitter: Emitter,
      registry: ListenerRegistry,
      telemetry: Telemetry,
    ) => {
      const options = { timeoutMs: relay.listenerTimeoutMs };
      return new TracedDelivery(emitter, registry, options, logger, telemetry);
    },
  },
  {
    provide: PARTS,
    inject: [RESOLVED_OPTIONS, OPENED_STORE, EMITTER, DELIVERY, TELEMETRY, ActivityCounter],
    useFactory: (
      options: ResolvedOptions,
      { store, wakeChannel, inbox }: OpenedStore,
      emitter: Emitter,
      delivery: Delivery,
      telemetry: Telemetry,
      counter: ActivityCounter,
    ): OutboxParts => {
      const reporter = new Reporter(
        logger,
        (notice) => void announce(emitter, notice),
        () => Logger.isLevelEnabled('debug'),
        telemetry,
        counter,
      );
      const relay = new Relay(store, delivery, reporter, options.relay, logger);
      const pump = new Pump(relay, options.relaying, wakeChannel);
      const pruner = new Pruner(store, options.retention, inbox?.prune.bind(inbox));
      return { options, store, emitter, relay, pump, pruner, telemetry };
    },
  },
  {
    provide: OutboxService,
    inject: [PARTS],
    useFactory: (parts: OutboxParts) => new OutboxService(parts),
  },
  {
    provide: OutboxDeadLetters,
    inject: [PARTS],
    useFactory: ({ store, pump }: OutboxParts) => new OutboxDeadLetters(store, () => pump.wake()),
  },
  {
    provide: OutboxInbox,
    inject: [RESOLVED_OPTIONS, OPENED_STORE],
    useFactory: ({ currentTransaction }: ResolvedOptions, { inbox }: OpenedStore) =>
      new OutboxInbox(inbox, currentTransaction),
  },
  {
    provide: BootstrapPublisher,
    inject: [
      RESOLVED_OPTIONS,
      OutboxStore,
      DELIVERY,
      EXPLORE,
      OutboxLifecycle,
      TELEMETRY,
      { token: EventEmitterReadinessWatcher, optional: true },
    ],
    useFactory: (
      { relay }: ResolvedOptions,
      store: OutboxStore,
      delivery: TracedDelivery,
      explore: () => void,
      lifecycle: OutboxLifecycle,
      telemetry: Telemetry,
      watcher: EventEmitterReadinessWatcher,
    ) => {
      const listenersAttached = async (): Promise<void> => {
        await watcher.waitUntilReady();
        explore();
      };
      const publications = new Publications(
        delivery,
        listenersAttached,
        relay.listenerTimeoutMs,
        logger,
      );
      const publisher = new BootstrapPublisher(
        publications,
        store.sentinels,
        logger,
        relay.shutdownTimeoutMs,
        telemetry,
      );
      lifecycle.add({
        start: () => delivery.watch(),
        stop: async () => {
          await publisher.stop();
          delivery.unwatch();
        },
      });
      return publisher;
    },
  },
  {
    provide: RelayWorker,
    inject: [
      PARTS,
      OPENED_STORE,
      ActivityCounter,
      ListenerRegistry,
      EXPLORE,
      OutboxLifecycle,
      { token: EventEmitterReadinessWatcher, optional: true },
    ],
    useFactory: (
      { options, store, relay, pump, pruner, telemetry }: OutboxParts,
      { prepare }: OpenedStore,
      counter: ActivityCounter,
      registry: ListenerRegistry,
      explore: () => void,
      lifecycle: OutboxLifecycle,
      watcher: EventEmitterReadinessWatcher,
    ) => {
      const caretaker = new Caretaker(relay, pump, pruner, logger);
      const worker = new RelayWorker(
        relay,
        pump,
        { listenersAttached: () => watcher.waitUntilReady(), storeReady: prepare },
        options.relaying ? () => openTicks(options, caretaker.tick, logger) : undefined,
        store.activity && new Heartbeat(store.activity, counter, () => registry.known(), logger),
      );
      // Only where events are relayed: one answer for all processes is enough.
      const gauges = {
        relaying: () => relay.isOpen,
        events: () => store.stats(),
        gates: async () => store.sentinels?.stats(),
      };
      let unobserve = (): void => {};
      lifecycle.add({
        start: () => {
          explore();
          worker.start();
          if (options.relaying) unobserve = telemetry.observe(gauges);
        },
        stop: async () => {
          await worker.stop();
          unobserve();
        },
      });
      return worker;
    },
  },
  {
    provide: OutboxMonitor,
    inject: [OutboxStore, ListenerRegistry],
    useFactory: (store: OutboxStore, registry: ListenerRegistry) =>
      new OutboxMonitor(store, () => registry.known(), ALIVE_WITHIN_MS),
  },
  {
    provide: OutboxDoctor,
    inject: [PARTS, OPENED_STORE, ListenerRegistry],
    useFactory: (
      { options, store }: OutboxParts,
      { database }: OpenedStore,
      registry: ListenerRegistry,
    ) =>
      new OutboxDoctor(() => ({
        store,
        names: sqlNames(options.schema, options.table),
        database: database && new PatientDatabase(database.pool, database.clientConfig),
        listeners: registry.known(),
        completedMs: options.retention.completedMs,
        bossSchema: database?.bossSchema,
        longTransactionMs: LONG_TRANSACTION_MS,
      })),
  },
  {
    provide: OutboxHealth,
    inject: [OutboxStore, RelayWorker],
    useFactory: (store: OutboxStore, worker: RelayWorker) =>
      new OutboxHealth(store, () => worker.activity),
  },
];

/**
 * The transactional outbox.
 *
 * ```ts
 * @Module({
 *   imports: [
 *     EventEmitterModule.forRoot(),
 *     OutboxModule.forRoot({ connectionString: process.env.DATABASE_URL }),
 *   ],
 * })
 * class AppModule {}
 * ```
 */
@Module({
  imports: [DiscoveryModule, OutboxLifecycleModule],
  providers,
  exports: [
    OutboxService,
    OutboxDeadLetters,
    OutboxInbox,
    OutboxMonitor,
    OutboxDoctor,
    OutboxHealth,
    BootstrapPublisher,
    OutboxStore,
  ],
})
export class OutboxModule
  extends ConfigurableOutboxModule
  implements OnModuleInit, OnApplicationShutdown
{
  private closing: Promise<void> | undefined;

  static override forRoot(options: typeof OUTBOX_OPTIONS): DynamicModule {
    assertGiven('forRoot', options, '{ connectionString: process.env.DATABASE_URL }');
    return super.forRoot(options);
  }

  static override forRootAsync(options: typeof OUTBOX_ASYNC_OPTIONS): DynamicModule {
    assertGiven('forRootAsync', options, '{ inject: [ConfigService], useFactory: (config) => … }');
    return super.forRootAsync(options);
  }

  constructor(
    @Inject(OPENED_STORE) private readonly opened: OpenedStore,
    modules: ModulesContainer,
  ) {
    super();
    const global = [...modules.values()].filter(
      ({ metatype, isGlobal }) => metatype === OutboxModule && isGlobal,
    );
    if (global.length > 1) {
      throw new OutboxError(
        'SETUP',
        'OutboxModule.forRoot() was imported twice: import it once, in your root module ' +
          '(for a second database, give isGlobal: false and import it where it is used)',
      );
    }
  }

  /** First of all hooks: others may enqueue in theirs. */
  async onModuleInit(): Promise<void> {
    try {
      await this.opened.prepare();
    } catch (error) {
      // The wrong schema stays wrong; a database that is down comes back, and the worker goes on trying.
      if (error instanceof OutboxError) {
        await this.close();
        throw error;
      }
      const hint = willNotMend(error)
        ? ' (this does not mend by itself: check role, password and GRANTs)'
        : '';
      logger.error(
        `cannot reach the outbox at start, will keep trying: ${errorText(error)}${hint}`,
      );
    }
  }

  /** Last of all hooks: HTTP requests still under way may have enqueued until now. */
  async onApplicationShutdown(): Promise<void> {
    await this.close();
  }

  private async close(): Promise<void> {
    this.closing ??= this.opened.store.close();
    await this.closing;
  }
}

/** Nest's builder would die of it with a TypeError about something else. */
function assertGiven(method: string, options: unknown, example: string): void {
  if (typeof options === 'object' && options !== null) return;
  throw new OutboxError(
    'SETUP',
    `OutboxModule.${method}(…) needs its options, e.g. OutboxModule.${method}(${example}), got ${options === null ? 'null' : typeof options}`,
  );
}

/** Refused by a server that was reached: the role or its password (28), the database (3D000), a grant (42501). */
function willNotMend(error: unknown): boolean {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : '';
  return typeof code === 'string' && /^(28|3D000|42501)/.test(code);
}
