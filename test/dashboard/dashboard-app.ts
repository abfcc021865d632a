import type { INestApplication, ModuleMetadata } from '@nestjs/common';
import { EventEmitterModule } from '@nestjs/event-emitter';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { OutboxDashboardModule, type OutboxDashboardOptions } from '../../src/dashboard.js';
import {
  OutboxDeadLetters,
  OutboxModule,
  OutboxService,
  OutboxStore,
  type OutboxModuleOptions,
  type OutboxPayload,
} from '../../src/index.js';
import { opened } from '../support/leaks.js';
import { RecordingLogger } from '../support/logger.js';
import { SILENT_BOSS } from '../support/outbox-app.js';

export type Server = 'express' | 'fastify';

export const ADMIN = 'admin:a long enough secret';
export const READER = 'reader:another long secret';
export const CREDENTIALS = [ADMIN, READER].map((each, i) => {
  const [username = '', password = ''] = each.split(':');
  return { username, password, rights: i === 0 ? ('act' as const) : ('read' as const) };
});

export interface DashboardAppOptions extends Pick<ModuleMetadata, 'providers' | 'imports'> {
  readonly server?: Server;
  readonly outbox: OutboxModuleOptions;
  readonly dashboard?: OutboxDashboardOptions;
  /** Before it listens: global prefix, pipes… */
  readonly configure?: (app: INestApplication) => void;
  readonly bodyParser?: boolean;
}

/** An application that serves the dashboard, listening on loopback. It must be closed before the test ends. */
export interface DashboardApp extends AsyncDisposable {
  readonly app: INestApplication;
  /** Of the server, e.g. `http://127.0.0.1:4711`. */
  readonly url: string;
  readonly outbox: OutboxService;
  readonly deadLetters: OutboxDeadLetters;
  readonly store: OutboxStore;
  readonly log: RecordingLogger;
  get(path: string, options?: Ask): Promise<Response>;
  /** As a browser sends a form from a page of the same origin. */
  post(path: string, form: Record<string, string | string[]>, options?: Ask): Promise<Response>;
  close(): Promise<void>;
}

export interface Ask {
  /** `name:password`; `null`: nobody. Default: somebody who may act. */
  readonly as?: string | null;
  readonly headers?: Record<string, string>;
}

export async function startDashboard({
  server = 'express',
  outbox,
  dashboard = { credentials: CREDENTIALS },
  providers = [],
  imports = [],
  configure = () => {},
  bodyParser = true,
}: DashboardAppOptions): Promise<DashboardApp> {
  const { relay = false } = outbox;
  const log = new RecordingLogger();
  const module = await Test.createTestingModule({
    imports: [
      EventEmitterModule.forRoot(),
      OutboxModule.forRoot({ ...outbox, relay: relay && { boss: SILENT_BOSS, ...relay } }),
      OutboxDashboardModule.forRoot(dashboard),
      ...imports,
    ],
    providers,
  })
    .setLogger(log)
    .compile();
  const adapter = server === 'express' ? new ExpressAdapter() : new FastifyAdapter();
  const app = module.createNestApplication(adapter, { bodyParser });
  app.useLogger(log);
  configure(app);
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();

  const close = async (): Promise<void> => {
    app.getHttpServer().closeAllConnections?.();
    await app.close();
    closed();
  };
  const closed = opened({ scope: 'test', describe: () => 'a dashboard', end: close });
  const ask = (path: string, { as = ADMIN, headers = {} }: Ask, init: RequestInit = {}) =>
    fetch(new URL(path, url), {
      redirect: 'manual',
      ...init,
      headers: {
        ...(as !== null && { Authorization: `Basic ${Buffer.from(as).toString('base64')}` }),
        ...headers,
      },
    });
  return {
    app,
    url,
    outbox: app.get(OutboxService),
    deadLetters: app.get(OutboxDeadLetters),
    store: app.get(OutboxStore),
    log,
    get: (path, options = {}) => ask(path, options),
    post(path, form, options = {}) {
      const body = new URLSearchParams();
      for (const [name, value] of Object.entries(form)) {
        for (const each of [value].flat()) body.append(name, each);
      }
      const headers = { Origin: url, ...options.headers };
      return ask(path, { ...options, headers }, { method: 'POST', body });
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Events that have become dead letters, oldest first: by a relay that judged them. @returns their ids */
export async function makeDeadLetters(
  { outbox, store }: Pick<DashboardApp, 'outbox' | 'store'>,
  events: readonly {
    eventType: string;
    payload?: object;
    metadata?: OutboxPayload;
    error?: string;
  }[],
): Promise<string[]> {
  const ids: string[] = [];
  for (const { eventType, payload = {}, metadata = {}, error = 'it failed' } of events) {
    const { id } = await outbox.enqueue(eventType, payload as never, metadata);
    const claimed = await store.claim({ limit: 100, leaseMs: 60_000 });
    await store.settle(
      claimed.map((claim) => ({
        id: claim.id,
        leaseToken: claim.leaseToken,
        outcome: claim.id === id ? ('failed' as const) : ('completed' as const),
        retryCount: 5,
        lastError: error,
        acknowledgedBy: [],
      })) as never,
    );
    ids.push(id);
  }
  return ids;
}
