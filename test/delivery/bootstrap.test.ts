import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Injectable, Module, type OnApplicationBootstrap, type OnModuleInit } from '@nestjs/common';
import { EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import { Test } from '@nestjs/testing';
import {
  OutboxModule,
  OutboxService,
  OutboxStore,
  type OutboxModuleOptions,
} from '../../src/index.js';
import { SILENT_BOSS } from '../support/outbox-app.js';
import { RecordingLogger } from '../support/logger.js';
import { openRestingPlace, RESTING_PLACES, type RestingPlace } from '../support/resting-place.js';
import { until } from '../support/until.js';

const ID = '11111111-1111-4111-8111-111111111111';

describe.each(RESTING_PLACES)('an application that starts, with events in %s', (kind) => {
  let place: RestingPlace;
  let outbox: OutboxModuleOptions;
  let calls: string[];

  class Listener {
    @OnEvent('a')
    handle(): void {
      calls.push('called');
    }
  }
  @Module({ providers: [Listener] })
  class ListenerModule {}

  beforeAll(async () => {
    place = await openRestingPlace(kind);
  });
  beforeEach(async () => {
    outbox = { ...(await place.empty()), relay: { boss: SILENT_BOSS } };
    calls = [];
  });
  afterAll(() => place.close());

  const event = { id: ID, eventType: 'a', payload: {}, metadata: {} };
  const outboxFirst = () => [
    OutboxModule.forRoot(outbox),
    EventEmitterModule.forRoot(),
    ListenerModule,
  ];
  const emitterFirst = () => [
    EventEmitterModule.forRoot(),
    OutboxModule.forRoot(outbox),
    ListenerModule,
  ];
  const listenerFirst = () => [
    ListenerModule,
    EventEmitterModule.forRoot(),
    OutboxModule.forRoot(outbox),
  ];

  it.each([
    ['outbox, emitter, listener', outboxFirst],
    ['emitter, outbox, listener', emitterFirst],
    ['listener, emitter, outbox', listenerFirst],
  ])(
    'delivers a row that was waiting, once, whatever the order of imports: %s',
    async (_, imports) => {
      const module = await Test.createTestingModule({ imports: imports() }).compile();
      const store = module.get(OutboxStore);
      await store.enqueue([event]);
      await module.init();
      try {
        await until(async () => (await store.find(ID))?.status === 'COMPLETED', {
          what: 'it is done',
        });
        await module.get(OutboxService).processPending();
        expect(calls).toEqual(['called']);
      } finally {
        await module.close();
      }
    },
  );

  it('delivers what is enqueued while it starts, from wherever', async () => {
    @Injectable()
    class Early implements OnModuleInit, OnApplicationBootstrap {
      constructor(private readonly service: OutboxService) {}

      async onModuleInit(): Promise<void> {
        await this.service.enqueue('a', { from: 'onModuleInit' });
      }

      async onApplicationBootstrap(): Promise<void> {
        await this.service.enqueue('a', { from: 'onApplicationBootstrap' });
      }
    }
    for (const imports of [outboxFirst, emitterFirst, listenerFirst]) {
      calls = [];
      outbox = { ...(await place.empty()), relay: { boss: SILENT_BOSS } };
      const module = await Test.createTestingModule({
        imports: imports(),
        providers: [Early],
      }).compile();
      await module.init();
      try {
        await until(() => calls.length === 2, { what: 'both are delivered' });
        const store = module.get(OutboxStore);
        for (const id of await place.ids())
          await until(async () => (await store.find(id))?.status === 'COMPLETED', { what: 'done' });
      } finally {
        await module.close();
      }
    }
  });

  it('delivers nothing before every service is through with its onApplicationBootstrap', async () => {
    const log: string[] = [];
    @Injectable()
    class SlowStarter implements OnApplicationBootstrap {
      async onApplicationBootstrap(): Promise<void> {
        for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
        log.push('started');
      }

      @OnEvent('a')
      handle(): void {
        log.push('called');
      }
    }
    for (const imports of [outboxFirst, emitterFirst, listenerFirst]) {
      log.splice(0);
      outbox = { ...(await place.empty()), relay: { boss: SILENT_BOSS } };
      const module = await Test.createTestingModule({
        imports: imports(),
        providers: [SlowStarter],
      }).compile();
      await module.get(OutboxStore).enqueue([event]);
      await module.init();
      try {
        await until(() => log.length === 2, { what: 'it is delivered' });
        expect(log).toEqual(['started', 'called']);
      } finally {
        await module.close();
      }
    }
  });

  it('compiled and not initialised refuses to deliver: nobody would hear', async () => {
    const module = await Test.createTestingModule({ imports: emitterFirst() })
      .setLogger(new RecordingLogger())
      .compile();
    try {
      const service = module.get(OutboxService);
      const { id } = await service.enqueue('a', {});
      await expect(service.processPending()).rejects.toThrow(
        'the listeners are not attached yet: await app.init() or app.listen() first',
      );
      expect(await module.get(OutboxStore).find(id)).toMatchObject({
        status: 'PENDING',
        retryCount: 0,
      });
      expect(calls).toEqual([]);
    } finally {
      await module.close();
    }
  });

  it('can relay by hand as soon as init() has returned', async () => {
    for (const imports of [outboxFirst, emitterFirst, listenerFirst]) {
      calls = [];
      outbox = { ...(await place.empty()), relay: false };
      const module = await Test.createTestingModule({ imports: imports() }).compile();
      await module.init();
      try {
        await module.get(OutboxService).enqueue('a', {});
        expect(await module.get(OutboxService).processPending()).toBe(1);
        expect(calls).toEqual(['called']);
      } finally {
        await module.close();
      }
    }
  });
});
