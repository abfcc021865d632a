import {
  Injectable,
  Module,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
} from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';

/** Something that is to start last and to stop first. */
export interface Startable {
  start(): void;
  stop(): Promise<void>;
}

/** Starts relays after everything else of the application, and stops them before everything else. */
@Injectable()
export class OutboxLifecycle implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly startables: Startable[] = [];

  add(startable: Startable): void {
    this.startables.push(startable);
  }

  onApplicationBootstrap(): void {
    for (const startable of this.startables) startable.start();
  }

  async onModuleDestroy(): Promise<void> {
    await Promise.all(this.startables.map(async (startable) => startable.stop()));
  }
}

/**
 * Nest goes through the modules by their distance from the root: starting from the farthest, stopping from the
 * nearest. Global modules count as farthest of all, so the outbox would be the last to stop, when the services that
 * listeners stand on (a Prisma client, a pool) have let go of their connections already, and each deploy would cost
 * events an attempt. This module is nearer than the root itself.
 */
@Module({ providers: [OutboxLifecycle], exports: [OutboxLifecycle] })
export class OutboxLifecycleModule {
  constructor(modules: ModulesContainer) {
    for (const module of modules.values()) {
      if (module.metatype === OutboxLifecycleModule) module.distance = -1;
    }
  }
}
