import {
  Inject,
  Injectable,
  Scope,
  type CanActivate,
  type ExecutionContext,
  type Type,
} from '@nestjs/common';
import { ContextIdFactory, ModuleRef } from '@nestjs/core';
import { rightsByCredentials, type DashboardRights } from './credentials.js';
import type { ResolvedSettings } from './dashboard-options.js';

/** The tokens of what `forRoot` was given. */
export const DASHBOARD_SETTINGS = Symbol('outbox dashboard settings, checked');
export const ACT_GUARD = Symbol('outbox dashboard act guard');

const decided = new WeakMap<object, DashboardRights>();

/** What the request may do. `null`: nothing; also if nobody was asked. */
export function rightsOf(request: object): DashboardRights | null {
  return decided.get(request) ?? null;
}

/**
 * Finds out what a request may do, and notes it. It turns nobody away: the routes do, with a page of their own. With
 * `guard`, whoever gets here was let in by it and may read; `actGuard` says who may act.
 */
@Injectable()
export class DashboardRightsGuard implements CanActivate {
  constructor(
    @Inject(DASHBOARD_SETTINGS) private readonly settings: ResolvedSettings,
    @Inject(ACT_GUARD) private readonly actGuard: Type<CanActivate> | null,
    private readonly modules: ModuleRef,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<{
      headers: { authorization?: string };
    }>();
    const { credentials } = this.settings;
    const rights =
      credentials === null
        ? (await this.mayAct(context, request))
          ? 'act'
          : 'read'
        : rightsByCredentials(request.headers.authorization, credentials);
    if (rights !== null) decided.set(request, rights);
    return true;
  }

  /** A guard says no by `false` or by throwing; either way the pages can be read. */
  private async mayAct(context: ExecutionContext, request: object): Promise<boolean> {
    if (this.actGuard === null) return false;
    try {
      const guard = await this.guardFor(this.actGuard, request);
      return await answerOf(guard.canActivate(context));
    } catch {
      return false;
    }
  }

  private async guardFor(type: Type<CanActivate>, request: object): Promise<CanActivate> {
    if (this.modules.introspect(type).scope === Scope.DEFAULT) return this.modules.get(type);
    const contextId = ContextIdFactory.getByRequest(request);
    this.modules.registerRequestByContextId(request, contextId);
    return this.modules.resolve(type, contextId);
  }
}

/** A guard may answer with an Observable: the last value counts, as it does for Nest. */
async function answerOf(answer: unknown): Promise<boolean> {
  const settled = await answer;
  if (!isObservable(settled)) return settled === true;
  return new Promise((resolve, reject) => {
    let last: unknown = false;
    settled.subscribe({
      next: (value) => (last = value),
      error: reject,
      complete: () => resolve(last === true),
    });
  });
}

interface Subscribable {
  subscribe(observer: {
    next: (value: unknown) => void;
    error: (error: Error) => void;
    complete: () => void;
  }): unknown;
}

function isObservable(value: unknown): value is Subscribable {
  return typeof value === 'object' && value !== null && 'subscribe' in value;
}
