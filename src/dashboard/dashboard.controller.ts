import {
  Controller,
  Get,
  Inject,
  Logger,
  Post,
  Req,
  Res,
  UseGuards,
  VERSION_NEUTRAL,
  type CanActivate,
  type Type,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { errorText } from '../event/error-text.js';
import { OutboxError } from '../event/outbox-error.js';
import { AssetFiles } from './asset-files.js';
import { crossOriginProblem } from './cross-origin.js';
import type { ResolvedSettings } from './dashboard-options.js';
import { DASHBOARD_SETTINGS, DashboardRightsGuard, rightsOf } from './dashboard.rights.js';
import { Fields } from './fields.js';
import { isLanguage, LANGUAGES, preferredLanguage } from './language.js';
import { linkFrom } from './link.js';
import { DashboardPages } from './pages.js';
import { assetReply, htmlReply, jsonReply, withHeaders, type Reply } from './reply.js';
import type { Visit } from './views/visit.js';

/** What Express and Fastify have in common. */
interface DashboardRequest {
  readonly method: string;
  readonly originalUrl?: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly params: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
}

type Answer = (visit: Visit, query: Fields) => Promise<Reply> | Reply;

/**
 * The routes. They take the request and send the response themselves: pipes and interceptors that the application set
 * up for its own API (a strict validation, an envelope around every answer) must not touch the pages.
 */
class DashboardRoutes {
  private readonly logger = new Logger('OutboxDashboard');

  constructor(
    @Inject(DASHBOARD_SETTINGS) private readonly settings: ResolvedSettings,
    @Inject(DashboardPages) private readonly pages: DashboardPages,
    @Inject(AssetFiles) private readonly assets: AssetFiles,
    @Inject(HttpAdapterHost) private readonly host: HttpAdapterHost,
  ) {}

  @Get()
  async overview(@Req() request: DashboardRequest, @Res() response: unknown): Promise<void> {
    await this.answer(request, response, 0, (visit, query) => this.pages.overview(visit, query));
  }

  @Get('activity.json')
  async activity(@Req() request: DashboardRequest, @Res() response: unknown): Promise<void> {
    await this.answer(request, response, 1, (visit, query) => this.pages.activity(visit, query));
  }

  @Get('processes')
  async processes(@Req() request: DashboardRequest, @Res() response: unknown): Promise<void> {
    await this.answer(request, response, 1, (visit) => this.pages.processes(visit));
  }

  @Get('gates')
  async gates(@Req() request: DashboardRequest, @Res() response: unknown): Promise<void> {
    await this.answer(request, response, 1, (visit, query) => this.pages.gates(visit, query));
  }

  @Post('gates/reopen')
  async reopen(@Req() request: DashboardRequest, @Res() response: unknown): Promise<void> {
    await this.change(request, response, (visit, form) => this.pages.reopenGate(visit, form));
  }

  @Get('dead-letters')
  async deadLetters(@Req() request: DashboardRequest, @Res() response: unknown): Promise<void> {
    await this.answer(request, response, 1, (visit, query) => this.pages.deadLetters(visit, query));
  }

  @Get('dead-letters/confirm')
  async confirm(@Req() request: DashboardRequest, @Res() response: unknown): Promise<void> {
    await this.answer(request, response, 2, (visit, query) =>
      visit.rights === 'act'
        ? this.pages.confirm(visit, query)
        : this.pages.problem(visit, 403, visit.words.notAllowed),
    );
  }

  @Post('dead-letters/run')
  async run(@Req() request: DashboardRequest, @Res() response: unknown): Promise<void> {
    await this.change(request, response, (visit, form) =>
      this.pages.run(visit, form, wantsJson(request)),
    );
  }

  @Get('events')
  async events(@Req() request: DashboardRequest, @Res() response: unknown): Promise<void> {
    await this.answer(request, response, 1, (visit, query) => this.pages.waiting(visit, query));
  }

  @Get('events/:id')
  async event(@Req() request: DashboardRequest, @Res() response: unknown): Promise<void> {
    const id = request.params['id'] ?? '';
    await this.answer(request, response, 2, (visit) => this.pages.event(visit, id));
  }

  @Get('assets/:file')
  async asset(@Req() request: DashboardRequest, @Res() response: unknown): Promise<void> {
    const asset = this.assets.find(request.params['file'] ?? '');
    await this.answer(request, response, 2, (visit) =>
      asset === undefined
        ? this.pages.problem(visit, 404, visit.words.noSuchPage)
        : assetReply(asset.type, asset.body),
    );
  }

  /** A change: from a page of this dashboard, by somebody who may, with a form. All of them are two levels down. */
  private async change(
    request: DashboardRequest,
    response: unknown,
    make: (visit: Visit, form: Fields) => Promise<Reply>,
  ): Promise<void> {
    await this.answer(request, response, 2, (visit) => {
      const { words, rights } = visit;
      const foreign = crossOriginProblem(request, this.settings.origin);
      if (foreign !== null) return this.pages.problem(visit, 403, words.crossOrigin(foreign));
      if (rights !== 'act') return this.pages.problem(visit, 403, words.notAllowed);
      if (typeof request.body !== 'object' || request.body === null) {
        return this.pages.problem(visit, 400, words.noForm);
      }
      return make(visit, Fields.ofBody(request.body));
    });
  }

  private async answer(
    request: DashboardRequest,
    response: unknown,
    depth: number,
    make: Answer,
  ): Promise<void> {
    const reply = await this.replyTo(request, depth, make);
    const { httpAdapter } = this.host;
    for (const [name, value] of Object.entries(reply.headers)) {
      httpAdapter.setHeader(response, name, value);
    }
    await httpAdapter.reply(response, reply.body, reply.status);
  }

  private async replyTo(request: DashboardRequest, depth: number, make: Answer): Promise<Reply> {
    const rights = rightsOf(request);
    if (rights === null) return this.stranger(request);
    const url = request.originalUrl ?? request.url;
    const query = Fields.ofQuery(url);
    const visit = this.visit(request, url, depth, query, rights);
    try {
      return await make(visit, query);
    } catch (error) {
      const isMistake = error instanceof OutboxError && error.code === 'INVALID_ARGUMENT';
      const message = errorText(error);
      if (!isMistake) this.logger.error(`${request.method} ${url.split('?')[0]}: ${message}`);
      const status = isMistake ? 400 : 500;
      if (wantsJson(request)) return jsonReply({ failure: message }, status);
      return this.pages.problem(visit, status, message);
    }
  }

  private visit(
    request: DashboardRequest,
    url: string,
    depth: number,
    query: Fields,
    rights: Visit['rights'],
  ): Visit {
    const { title, timeZone, language } = this.settings;
    const [path = ''] = url.split('?');
    const asked = query.text('lang');
    const chosenLanguage = isLanguage(asked) ? asked : undefined;
    const code =
      chosenLanguage ?? language ?? preferredLanguage(request.headers['accept-language']);
    const link = linkFrom(path, depth, { lang: chosenLanguage });
    const plainLink = linkFrom(path, depth);
    const rest = new URLSearchParams(url.slice(path.length));
    return {
      title,
      words: LANGUAGES[code],
      rights,
      link,
      asset: (name) => plainLink(this.assets.pathOf(name)),
      inLanguage: (other) => {
        const search = new URLSearchParams(rest);
        search.set('lang', other);
        return `?${search}`;
      },
      chosenLanguage,
      timeZone,
      now: new Date(),
    };
  }

  private stranger(request: DashboardRequest): Reply {
    const words = LANGUAGES[preferredLanguage(request.headers['accept-language'])];
    const reply = wantsJson(request)
      ? jsonReply({ failure: words.problem[401] }, 401)
      : htmlReply(
          `<!doctype html><html lang="${words.code}"><title>${words.problem[401]}</title><h1>${words.problem[401]}</h1></html>`,
          401,
        );
    return withHeaders(reply, {
      'WWW-Authenticate': 'Basic realm="Outbox dashboard", charset="UTF-8"',
    });
  }
}

function wantsJson({ headers }: DashboardRequest): boolean {
  return headers['accept']?.startsWith('application/json') ?? false;
}

/**
 * A controller for one path: Nest takes path and guards from the class.
 * @param decorators of the application, e.g. `Public()` or `SkipThrottle()`
 */
export function dashboardControllerAt(
  path: string,
  guard: Type<CanActivate> | undefined,
  decorators: readonly ClassDecorator[],
): Type {
  @Controller({ path, version: VERSION_NEUTRAL })
  @UseGuards(...(guard === undefined ? [] : [guard]), DashboardRightsGuard)
  class DashboardController extends DashboardRoutes {}
  for (const decorate of decorators) decorate(DashboardController);
  return DashboardController;
}
