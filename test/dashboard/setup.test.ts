import { describe, expect, it } from '@jest/globals';
import {
  HttpException,
  Injectable,
  Module,
  Scope,
  SetMetadata,
  ValidationPipe,
  VersioningType,
  type CallHandler,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common';
import { EventEmitterModule } from '@nestjs/event-emitter';
import { Test } from '@nestjs/testing';
import { OutboxDashboardModule, type OutboxDashboardOptions } from '../../src/dashboard.js';
import { OutboxModule } from '../../src/index.js';
import { InMemoryOutboxStore } from '../../src/testing.js';
import { CREDENTIALS, makeDeadLetters, startDashboard, type Server } from './dashboard-app.js';

const credentials = CREDENTIALS;

/** A guard with something injected, as an application's have. */
@Injectable()
class Staff {
  readonly names = ['ops', 'intern'];
}

@Module({ providers: [Staff], exports: [Staff] })
class StaffModule {}

@Injectable()
class StaffGuard implements CanActivate {
  constructor(private readonly staff: Staff) {}
  canActivate(context: ExecutionContext): boolean {
    const name = context.switchToHttp().getRequest().headers['x-user'];
    if (name === undefined) throw new HttpException('who are you?', 418);
    return this.staff.names.includes(name);
  }
}

@Injectable({ scope: Scope.REQUEST })
class OpsGuard implements CanActivate {
  async canActivate(context: ExecutionContext): Promise<boolean> {
    return context.switchToHttp().getRequest().headers['x-user'] === 'ops';
  }
}

describe('the set-up of the dashboard', () => {
  it.each([
    [{}, /closed until you say who may come in: give credentials: .* or guard/],
    [{ guard: StaffGuard, credentials }, /exclude each other/],
    [{ credentials: [] }, /credentials must be a list .* with somebody in it/],
    [{ actGuard: OpsGuard, credentials }, /actGuard needs a guard/],
    [
      { credentials: [{ username: 'a', password: 'tooshort', rights: 'act' }] },
      /credentials\[0\]\.password must have 12 characters or more, got 8 characters/,
    ],
    [
      { credentials: [{ username: 'a', rights: 'act' }] },
      /credentials\[0\]\.password must have 12 characters or more, got undefined/,
    ],
    [
      { credentials: [{ username: 'a:b', password: 'x'.repeat(12), rights: 'act' }] },
      /username must be a name without a colon/,
    ],
    [
      { credentials: [{ username: 'a', password: 'x'.repeat(12), rights: 'write' }] },
      /rights must be 'read' or 'act', got "write"/,
    ],
    [{ credentials: [credentials[0], credentials[0]] }, /"admin" is there twice/],
    [{ credentials, titel: 'x' }, /unknown option titel: did you mean title\?/],
    [{ credentials, path: 'a/:id' }, /path must be a plain path/],
    [{ credentials, timeZone: 'Mars/Olympus' }, /timeZone must be a time zone/],
    [{ credentials, language: 'fr' }, /language must be 'en' or 'ko'/],
    [{ credentials, mask: 'password' }, /mask must be a list of field names/],
    [{ credentials, origin: 'admin.example.com' }, /origin must be scheme and host/],
  ] as [object, RegExp][])('refuses %j', (options, message) => {
    expect(() => OutboxDashboardModule.forRoot(options as OutboxDashboardOptions)).toThrow(message);
  });

  it('never has a password in its message', () => {
    try {
      OutboxDashboardModule.forRoot({
        credentials: [{ username: 'a', password: 'hunter2', rights: 'act' }],
      });
    } catch (error) {
      expect(String(error)).not.toContain('hunter2');
    }
    expect.assertions(1);
  });

  it('does not start if the factory gives nobody, and says so', async () => {
    const module = Test.createTestingModule({
      imports: [
        EventEmitterModule.forRoot(),
        OutboxModule.forRoot({ store: new InMemoryOutboxStore(), relay: false }),
        OutboxDashboardModule.forRootAsync({ useFactory: async () => ({}) }),
      ],
    });
    await expect(module.compile()).rejects.toThrow(/closed until you say who may come in/);
  });

  it('does not start without an outbox, and says so', async () => {
    const module = Test.createTestingModule({
      imports: [OutboxDashboardModule.forRoot({ credentials })],
    });
    await expect(module.compile()).rejects.toThrow(/finds no outbox: import OutboxModule\.forRoot/);
  });
});

describe.each<Server>(['express', 'fastify'])('the guards of the application, on %s', (server) => {
  const outbox = { store: new InMemoryOutboxStore() };

  it('decide who looks and who acts, with what is injected into them', async () => {
    const dashboard = { guard: StaffGuard, actGuard: OpsGuard, imports: [StaffModule] };
    await using app = await startDashboard({ server, outbox, dashboard });
    const [id = ''] = await makeDeadLetters(app, [{ eventType: 'a.b' }]);
    const statusFor = async (name?: string): Promise<number[]> => {
      const headers = { ...(name !== undefined && { 'x-user': name }) };
      const page = await app.get('/outbox/dead-letters', { as: null, headers });
      const act = await app.post(
        '/outbox/dead-letters/run',
        { action: 'redrive', id },
        { as: null, headers },
      );
      return [page.status, act.status];
    };
    // The exception of the guard is the application's affair.
    expect(await statusFor()).toEqual([418, 418]);
    expect(await statusFor('mallory')).toEqual([403, 403]);
    expect(await statusFor('intern')).toEqual([200, 403]);
    expect(await statusFor('ops')).toEqual([200, 303]);
  });

  it('let nobody act without an actGuard', async () => {
    const dashboard = { guard: StaffGuard, imports: [StaffModule] };
    await using app = await startDashboard({ server, outbox, dashboard });
    const headers = { 'x-user': 'ops' };
    const page = await app.get('/outbox', { as: null, headers });
    expect(await page.text()).toContain('read only');
    const form = { action: 'redrive', id: crypto.randomUUID() };
    const act = await app.post('/outbox/dead-letters/run', form, { as: null, headers });
    expect(act.status).toBe(403);
  });
});

describe.each<Server>(['express', 'fastify'])(
  'what the application set up for itself, on %s',
  (server) => {
    it('does not touch the pages: prefix, version, strict validation, an envelope, decorators', async () => {
      await using app = await startDashboard({
        server,
        outbox: { store: new InMemoryOutboxStore() },
        dashboard: { path: 'admin/queue', credentials, decorators: [SetMetadata('public', true)] },
        configure(nest) {
          nest.setGlobalPrefix('api');
          nest.enableVersioning({ type: VersioningType.URI, defaultVersion: '3' });
          nest.useGlobalPipes(new StrictPipe());
          nest.useGlobalInterceptors({
            intercept: (_: ExecutionContext, next: CallHandler) => {
              const answer: any = next.handle();
              return Object.assign(Object.create(answer), {
                subscribe: (observer: any) =>
                  answer.subscribe({
                    ...observer,
                    next: (data: unknown) => observer.next({ data }),
                    error: (error: unknown) => observer.error(error),
                    complete: () => observer.complete(),
                  }),
              });
            },
          });
          nest.useGlobalGuards({
            canActivate: (context) => Reflect.getMetadata('public', context.getClass()) === true,
          });
        },
      });
      const [id = ''] = await makeDeadLetters(app, [{ eventType: 'a.b' }]);
      for (const path of ['', '/dead-letters', `/events/${id}`, '/gates?x=1']) {
        const page = `/api/admin/queue${path}`;
        const response = await app.get(page);
        const html = await response.text();
        expect([page, response.status]).toEqual([page, 200]);
        expect(html).toMatch(/^<!doctype html>/);
        const targets = [...html.matchAll(/ (?:href|src|action)="([^"#?d][^"]*)"/g)].map(
          ([, target = '']) => new URL(target.replaceAll('&amp;', '&'), app.url + page),
        );
        expect(targets.length).toBeGreaterThan(6);
        for (const target of targets) {
          if (/\/(?:run|confirm)$/.test(target.pathname)) continue;
          expect([page, target.pathname, (await app.get(target.href)).status]).toEqual([
            page,
            target.pathname,
            200,
          ]);
        }
      }
      const response = await app.post('/api/admin/queue/dead-letters/run', {
        action: 'redrive',
        id,
        more: 'x',
      });
      expect(response.status).toBe(303);
      const after = new URL(
        response.headers.get('location') ?? '',
        `${app.url}/api/admin/queue/dead-letters/run`,
      );
      expect(after.pathname).toBe(`/api/admin/queue/events/${id}`);
    });

    it('may not be a body parser that is off: then forms say what is missing', async () => {
      await using app = await startDashboard({
        server,
        outbox: { store: new InMemoryOutboxStore() },
        bodyParser: false,
      });
      const response = await app.post('/outbox/dead-letters/run', { action: 'redrive' });
      // Fastify itself refuses what it cannot parse.
      expect(response.status).toBe(server === 'express' ? 400 : 415);
      if (server === 'express') expect(await response.text()).toContain('body parser');
    });

    it('is served in the language of the browser, and in the one that was chosen', async () => {
      await using app = await startDashboard({
        server,
        outbox: { store: new InMemoryOutboxStore() },
      });
      const korean = { headers: { 'Accept-Language': 'ko-KR,ko;q=0.9,en;q=0.8' } };
      expect(await (await app.get('/outbox', korean)).text()).toContain('<h1>개요</h1>');
      const chosen = await (await app.get('/outbox?lang=en', korean)).text();
      expect(chosen).toContain('<h1>Overview</h1>');
      // Every link takes it along.
      expect(chosen).toContain('href="./outbox/dead-letters?lang=en"');
    });
  },
);

describe('masked fields', () => {
  it('are not in the page, nor in its source', async () => {
    await using app = await startDashboard({
      outbox: { store: new InMemoryOutboxStore() },
      dashboard: { credentials, mask: ['Phone', 'customer.address', 'metadata.token'] },
    });
    const [id = ''] = await makeDeadLetters(app, [
      {
        eventType: 'a.b',
        payload: {
          phone: 'SECRET-1',
          address: 'shown-1',
          token: 'shown-2',
          customers: [{ phone: { home: 'SECRET-2' } }],
          customer: { address: ['SECRET-3'] },
        },
        metadata: { token: 'SECRET-4' },
      },
    ]);
    const pages = ['/outbox/dead-letters', '/outbox', `/outbox/events/${id}`];
    const html = await Promise.all(pages.map(async (page) => (await app.get(page)).text()));
    expect(html.join('\n')).not.toContain('SECRET');
    for (const shown of ['shown-1', 'shown-2', '•••']) expect(html[2]).toContain(shown);
  });

  it('are what a function says, and everything if it fails', async () => {
    const asked: string[] = [];
    await using app = await startDashboard({
      outbox: { store: new InMemoryOutboxStore() },
      dashboard: {
        credentials,
        mask: (path) => {
          asked.push(path);
          if (path.endsWith('broken')) throw new Error('oops');
          return path === 'payload.items.0.price';
        },
      },
    });
    const [id = ''] = await makeDeadLetters(app, [
      {
        eventType: 'a.b',
        payload: { items: [{ price: 'SECRET' }], broken: 'SECRET', name: 'shown' },
      },
    ]);
    const html = await (await app.get(`/outbox/events/${id}`)).text();
    expect(html).not.toContain('SECRET');
    expect(html).toContain('shown');
    expect(asked).toContain('payload.items.0.price');
  });
});

/** What `new ValidationPipe({ whitelist: true, forbidNonWhitelisted: true })` does to a class without decorators. */
class StrictPipe extends ValidationPipe {
  constructor() {
    super({ validatorPackage: { validate: async () => [] }, transformerPackage: {} as any });
  }
  override async transform(): Promise<never> {
    throw new HttpException('property more should not exist', 400);
  }
}
