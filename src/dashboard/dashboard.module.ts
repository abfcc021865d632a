import {
  Module,
  type CanActivate,
  type DynamicModule,
  type FactoryProvider,
  type ModuleMetadata,
  type Type,
} from '@nestjs/common';
import { BootstrapPublisher } from '../bootstrap/bootstrap.publisher.js';
import { OutboxDeadLetters } from '../dead-letter/dead-letters.js';
import { assertKnownKeys } from '../event/known-keys.js';
import { invalid, OutboxError } from '../event/outbox-error.js';
import { shown } from '../event/shown.js';
import { OutboxMonitor } from '../monitor/outbox.monitor.js';
import { OutboxStore } from '../store/outbox-store.js';
import { AssetFiles } from './asset-files.js';
import {
  PLACE_KEYS,
  resolvePath,
  resolveSettings,
  SETTINGS_KEYS,
  type DashboardSettings,
  type ResolvedSettings,
} from './dashboard-options.js';
import { dashboardControllerAt } from './dashboard.controller.js';
import { ACT_GUARD, DASHBOARD_SETTINGS, DashboardRightsGuard } from './dashboard.rights.js';
import { DashboardPages } from './pages.js';

/** Where the dashboard lies and who guards it: known before the application starts, as Nest's routes are. */
export interface DashboardPlace {
  /** Below the application's global prefix. Default `outbox`. */
  readonly path?: string | undefined;
  /** A guard of your application that says who may look. Either this or `credentials`. */
  readonly guard?: Type<CanActivate> | undefined;
  /** Says who of them may redrive, discard and reopen. Without it nobody may. */
  readonly actGuard?: Type<CanActivate> | undefined;
  /** Modules with what the guards inject, unless they are global; with `isGlobal: false`, the one with the outbox. */
  readonly imports?: ModuleMetadata['imports'] | undefined;
  /** For the controller, e.g. `[Public()]` if a global guard of yours asks for that, or `[ApiExcludeController()]`. */
  readonly decorators?: readonly ClassDecorator[] | undefined;
}

export interface OutboxDashboardOptions extends DashboardPlace, DashboardSettings {}

export interface OutboxDashboardAsyncOptions extends DashboardPlace {
  readonly inject?: FactoryProvider['inject'] | undefined;
  readonly useFactory: (
    // oxlint-disable-next-line typescript/no-explicit-any -- what is injected is the caller's affair
    ...injected: any[]
  ) => DashboardSettings | Promise<DashboardSettings>;
}

/**
 * Pages for the people who run the outbox: what it does, and its dead letters. Closed until somebody says who may
 * come in.
 *
 * ```ts
 * OutboxDashboardModule.forRoot({
 *   path: 'outbox',
 *   credentials: [{ username: 'ops', password: process.env.OUTBOX_DASHBOARD_PASSWORD, rights: 'act' }],
 * })
 * ```
 */
@Module({})
export class OutboxDashboardModule {
  /** @throws OutboxError `SETUP` without `guard` and `credentials`, `INVALID_ARGUMENT` */
  static forRoot(options: OutboxDashboardOptions): DynamicModule {
    assertOptions(options, [...PLACE_KEYS, ...SETTINGS_KEYS]);
    const { path, guard, actGuard, imports, decorators, ...given } = options;
    const settings = resolveSettings(given, guard !== undefined);
    return moduleAt(
      { path, guard, actGuard, imports, decorators },
      { provide: DASHBOARD_SETTINGS, useFactory: () => settings },
    );
  }

  /** The application does not start if the factory's settings cannot be meant. @throws OutboxError `INVALID_ARGUMENT` */
  static forRootAsync(options: OutboxDashboardAsyncOptions): DynamicModule {
    assertOptions(options, [...PLACE_KEYS, 'inject', 'useFactory']);
    const { path, guard, actGuard, imports, decorators, inject = [], useFactory } = options;
    if (typeof useFactory !== 'function') {
      throw invalid(`useFactory must be a function, got ${shown(useFactory)}`);
    }
    return moduleAt(
      { path, guard, actGuard, imports, decorators },
      {
        provide: DASHBOARD_SETTINGS,
        inject,
        useFactory: async (...injected: unknown[]) =>
          resolveSettings(await useFactory(...injected), guard !== undefined),
      },
    );
  }
}

function moduleAt(place: DashboardPlace, settings: FactoryProvider): DynamicModule {
  const { guard, actGuard, imports = [], decorators = [] } = place;
  const path = resolvePath(place.path);
  if (actGuard !== undefined && guard === undefined) {
    throw invalid(
      "actGuard needs a guard beside it; with credentials, rights: 'act' says who acts",
    );
  }
  for (const [name, value] of Object.entries({ guard, actGuard })) {
    if (value !== undefined && typeof value !== 'function') {
      throw invalid(`${name} must be a class that implements CanActivate, got ${shown(value)}`);
    }
  }
  return {
    module: OutboxDashboardModule,
    imports,
    controllers: [dashboardControllerAt(path, guard, decorators)],
    providers: [
      settings,
      { provide: ACT_GUARD, useValue: actGuard ?? null },
      ...(actGuard === undefined ? [] : [actGuard]),
      DashboardRightsGuard,
      AssetFiles,
      {
        provide: DashboardPages,
        inject: [
          DASHBOARD_SETTINGS,
          { token: OutboxStore, optional: true },
          { token: OutboxMonitor, optional: true },
          { token: OutboxDeadLetters, optional: true },
          { token: BootstrapPublisher, optional: true },
        ],
        useFactory: (
          resolved: ResolvedSettings,
          store?: OutboxStore,
          monitor?: OutboxMonitor,
          deadLetters?: OutboxDeadLetters,
          publisher?: BootstrapPublisher,
        ) => {
          if (!store || !monitor || !deadLetters || !publisher) {
            throw new OutboxError(
              'SETUP',
              'OutboxDashboardModule finds no outbox: import OutboxModule.forRoot({ … }) in your root module (one ' +
                'with isGlobal: false must be in the imports of OutboxDashboardModule)',
            );
          }
          return new DashboardPages({ store, monitor, deadLetters, publisher }, resolved);
        },
      },
    ],
  };
}

function assertOptions(options: unknown, known: readonly string[]): asserts options is object {
  if (typeof options !== 'object' || options === null) {
    throw invalid(
      `dashboard options must be an object { path, credentials, … }, got ${shown(options)}`,
    );
  }
  assertKnownKeys('', options, known);
}
