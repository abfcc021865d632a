import { Injectable } from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import 'reflect-metadata';
import type { Emitter, EventName } from './emitter.js';
import { ListenerRegistry } from './listener-registry.js';
import { listenerName, observe } from './observe.js';

// The key `@OnEvent` writes its metadata under; @nestjs/event-emitter exports it from 12 on, so 3 cannot import it.
const EVENT_LISTENER_METADATA = 'EVENT_LISTENER_METADATA';

/**
 * Finds every `@OnEvent` method, the way @nestjs/event-emitter does, and puts it under observation. Runs after that
 * has subscribed them (in its `onApplicationBootstrap`), so that both have seen the same: a method that nobody
 * observes would fail without a word. It is not too late: a method is looked up on its object for each event.
 */
@Injectable()
export class ListenersExplorer {
  constructor(
    private readonly discovery: DiscoveryService,
    private readonly scanner: MetadataScanner,
    private readonly registry: ListenerRegistry,
  ) {}

  explore(emitter: Emitter): void {
    this.registry.reset(emitter);
    for (const wrapper of [...this.discovery.getProviders(), ...this.discovery.getControllers()]) {
      const instance = wrapper.instance as unknown;
      if (typeof instance !== 'object' || instance === null || wrapper.isAlias) continue;
      const prototype = Object.getPrototypeOf(instance) as object | null;
      if (prototype === null) continue;
      const isStatic = wrapper.isDependencyTreeStatic();
      for (const method of this.scanner.getAllMethodNames(prototype)) {
        for (const event of subscribedEvents(instance, method)) {
          observe(prototype, method);
          this.registry.add({
            name: listenerName(instance, method),
            event,
            target: isStatic ? instance : prototype,
            method,
          });
        }
      }
    }
  }
}

function subscribedEvents(instance: object, method: string): EventName[] {
  const handler = (instance as Record<string, unknown>)[method];
  if (typeof handler !== 'function') return [];
  const metadata: unknown = Reflect.getMetadata(EVENT_LISTENER_METADATA, handler);
  if (metadata === undefined) return [];
  const subscriptions = (Array.isArray(metadata) ? metadata : [metadata]) as { event: EventName }[];
  return subscriptions.map(({ event }) => event);
}
