import {
  Inject,
  Logger,
  Module,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleDestroy,
  type OnModuleInit,
  type Provider,
} from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { EventEmitter2, EventEmitterReadinessWatcher } from '@nestjs/event-emitter';
import { OutboxDeadLetters } from './dead-letter/dead-letters.service.js';
import { Delivery } from './delivery/delivery.js';
import type { Emitter } from './delivery/emitter.js';
import { ListenerRegistry } from './delivery/listener-registry.js';
import { ListenersExplorer } from './delivery/listeners.explorer.js';
import { OUTBOX_DEAD_LETTER } from './event/event-type.js';
import { errorText } from './event/error-text.js';
import { OutboxError } from './event/outbox-error.js';
import { OutboxInbox } from './inbox/inbox.service.js';
import { openStore, openTicks, type OpenedStore } from './open-store.js';
import { ConfigurableOutboxModule, OUTBOX_MODULE_OPTIONS } from './outbox.module-definition.js';
import {
  resolveOptions,
  type OutboxModuleOptions,
  type ResolvedOptions,
} from './outbox-options.js';
import { OutboxService, type OutboxParts } from './outbox.service.js';
import { Caretaker } from './relay/caretaker.js';
import { Pruner } from './relay/pruner.js';
import { Pump } from './relay/pump.js';
import { Relay } from './relay/relay.js';
import { RelayWorker } from './relay/relay.worker.js';
import { Reporter } from './relay/reporter.js';
import { OutboxStore } from './store/outbox-store.js';

const RESOLVED_OPTIONS = Symbol('outbox options');
const OPENED_STORE = Symbol('outbox store, opened');
const EMITTER = Symbol('outbox emitter');
const PARTS = Symbol('outbox parts');

const logger = new Logger('Outbox');

const providers: Provider[] = [
  {
    provide: RESOLVED_OPTIONS,
    inject: [OUTBOX_MODULE_OPTIONS],
    useFactory: (options: OutboxModuleOptions) => resolveOptions(options),
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
  ListenerRegistry,
  ListenersExplorer,
  {
    provide: PARTS,
    inject: [RESOLVED_OPTIONS, OPENED_STORE, EMITTER, ListenerRegistry],
    useFactory: (
      options: ResolvedOptions,
      { store, wakeChannel, inbox }: OpenedStore,
      emitter: Emitter,
      registry: ListenerRegistry,
    ): OutboxParts => {
      const delivery = new Delivery(emitter, registry, {
        timeoutMs: options.relay.listenerTimeoutMs,
      });
      const reporter = new Reporter(
        logger,
        (notice) => emitter.emit(OUTBOX_DEAD_LETTER, notice),
        () => Logger.isLevelEnabled('debug'),
      );
      const relay = new Relay(store, delivery, reporter, options.relay, logger);
      const pump = new Pump(relay, options.relaying, wakeChannel);
      const pruner = new Pruner(store, options.retention, inbox?.prune.bind(inbox));
      return { options, store, emitter, relay, pump, pruner };
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
    provide: RelayWorker,
    inject: [PARTS, OPENED_STORE, { token: EventEmitterReadinessWatcher, optional: true }],
    useFactory: (
      { options, relay, pump, pruner }: OutboxParts,
      { prepare }: OpenedStore,
      watcher: EventEmitterReadinessWatcher,
    ) => {
      const caretaker = new Caretaker(relay, pump, pruner, logger);
      return new RelayWorker(
        relay,
        pump,
        { listenersAttached: () => watcher.waitUntilReady(), storeReady: prepare },
        options.relaying ? () => openTicks(options, caretaker.tick, logger) : undefined,
      );
    },
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
  imports: [DiscoveryModule],
  providers,
  exports: [OutboxService, OutboxDeadLetters, OutboxInbox, OutboxStore],
})
export class OutboxModule
  extends ConfigurableOutboxModule
  implements OnModuleInit, OnApplicationBootstrap, OnModuleDestroy, OnApplicationShutdown
{
  constructor(
    @Inject(OPENED_STORE) private readonly opened: OpenedStore,
    @Inject(EMITTER) private readonly emitter: Emitter,
    private readonly explorer: ListenersExplorer,
    private readonly worker: RelayWorker,
  ) {
    super();
  }

  /** Before the event module subscribes the listeners, in its `onApplicationBootstrap`. */
  async onModuleInit(): Promise<void> {
    this.explorer.explore(this.emitter);
    try {
      await this.opened.prepare();
    } catch (error) {
      // The wrong schema stays wrong; a database that is down comes back, and the worker goes on trying.
      if (error instanceof OutboxError) throw error;
      logger.error(`cannot reach the outbox at start, will keep trying: ${errorText(error)}`);
    }
  }

  onApplicationBootstrap(): void {
    this.worker.start();
  }

  /** First of all hooks: the listeners and what they use are still there. */
  async onModuleDestroy(): Promise<void> {
    await this.worker.stop();
  }

  /** Last of all hooks: HTTP requests still under way may have enqueued until now. */
  async onApplicationShutdown(): Promise<void> {
    await this.opened.store.close();
  }
}
