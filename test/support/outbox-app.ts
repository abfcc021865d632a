import type { ModuleMetadata } from '@nestjs/common';
import { EventEmitter2, EventEmitterModule } from '@nestjs/event-emitter';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  OutboxDeadLetters,
  OutboxModule,
  OutboxService,
  OutboxStore,
  type OutboxModuleOptions,
  type StoredEvent,
  type TickBoss,
} from '../../src/index.js';
import { opened } from './leaks.js';
import { RecordingLogger } from './logger.js';
import { until } from './until.js';

type EmitterOptions = Parameters<typeof EventEmitterModule.forRoot>[0];

export interface OutboxAppOptions extends Pick<
  ModuleMetadata,
  'providers' | 'controllers' | 'imports'
> {
  /** Where events rest, and whatever else differs from: relays by hand only. */
  readonly outbox: OutboxModuleOptions;
  readonly emitter?: EmitterOptions;
}

/** An application with the outbox in it, initialised. It must be closed before the test ends. */
export interface OutboxApp extends AsyncDisposable {
  readonly module: TestingModule;
  readonly outbox: OutboxService;
  readonly deadLetters: OutboxDeadLetters;
  readonly store: OutboxStore;
  readonly emitter: EventEmitter2;
  readonly log: RecordingLogger;
  /** The event as it is stored. */
  event(id: string): Promise<StoredEvent>;
  /** Resolves to the event once it is in that state. */
  eventIn(status: StoredEvent['status'], id: string): Promise<StoredEvent>;
  close(): Promise<void>;
}

/** A pg-boss that never ticks: the relay is woken by enqueues alone. */
export const SILENT_BOSS: TickBoss = {
  createQueue: async () => {},
  schedule: async () => {},
  send: async () => null,
  work: async () => 'nothing',
  offWork: async () => {},
};

/** With `relay: { … }` it is woken by enqueues; without, it relays by hand only. */
export async function startApp({
  outbox,
  emitter,
  providers = [],
  controllers = [],
  imports = [],
}: OutboxAppOptions): Promise<OutboxApp> {
  const { relay = false } = outbox;
  const log = new RecordingLogger();
  const module = await Test.createTestingModule({
    imports: [
      EventEmitterModule.forRoot(emitter),
      OutboxModule.forRoot({ ...outbox, relay: relay && { boss: SILENT_BOSS, ...relay } }),
      ...imports,
    ],
    providers,
    controllers,
  })
    .setLogger(log)
    .compile();
  await module.init();

  const store = module.get(OutboxStore);
  const event = async (id: string): Promise<StoredEvent> => {
    const found = await store.find(id);
    if (found === null) throw new Error(`there is no event ${id}`);
    return found;
  };
  const close = async (): Promise<void> => {
    await module.close();
    closed();
  };
  const closed = opened({ scope: 'test', describe: () => 'an application', end: close });
  return {
    module,
    outbox: module.get(OutboxService),
    deadLetters: module.get(OutboxDeadLetters),
    store,
    emitter: module.get(EventEmitter2),
    log,
    event,
    async eventIn(status, id) {
      let last: StoredEvent | undefined;
      await until(async () => (last = await event(id)).status === status, {
        what: `${id} is ${status}`,
      });
      return last as StoredEvent;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}
