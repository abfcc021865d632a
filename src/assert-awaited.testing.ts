import type { INestApplicationContext } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import { BootstrapPublisher } from './bootstrap/bootstrap.publisher.js';
import { PublishFailedError } from './bootstrap/gate-errors.js';
import type { PayloadOf } from './delivery/outbox-context.js';
import { errorText } from './event/error-text.js';
import { invalid } from './event/outbox-error.js';

// How long what the listener calls stays pending before it rejects.
const PENDING_MS = 50;

/** A listener, and what it stands on. */
export interface AwaitedDependency<EventType extends string, Dependency extends object> {
  readonly eventType: EventType;
  readonly payload: PayloadOf<EventType>;
  /** The listener that must reject, as `ClassName.method`. */
  readonly listener: string;
  /** What the listener calls, e.g. the queue… */
  readonly dependency: Dependency;
  /** …and its method that is made to reject, e.g. `'addBulk'`. */
  readonly method: keyof Dependency & string;
}

/**
 * Proves that a listener awaits what it stands on: makes that reject for the time of one `publishAsync`, and demands that
 * the listener rejects with it. A listener that starts the work and returns lets a sentinel be stamped over work that
 * has failed.
 *
 * ```ts
 * it('the search index is fed before the sentinel is stamped', async () => {
 *   await assertAwaited(app, {
 *     eventType: 'record.bulk.upserted',
 *     payload: { tenantId: 7, recordIds: ['a'] },
 *     listener: 'SearchIndexListener.onRecordsBulkUpserted',
 *     dependency: app.get(SearchQueue),
 *     method: 'addBulk',
 *   });
 * });
 * ```
 *
 * @param app initialised (`await app.init()`)
 * @throws Error that says what the listener did instead
 */
export async function assertAwaited<EventType extends string, Dependency extends object>(
  app: Pick<INestApplicationContext, 'get'>,
  { eventType, payload, listener, dependency, method }: AwaitedDependency<EventType, Dependency>,
): Promise<void> {
  const publisher = app.get(BootstrapPublisher, { strict: false });
  const broken = breakMethod(dependency, method);
  try {
    const publishing = publisher.publishAsync(eventType, payload).then(
      () => undefined,
      (error: unknown) => error,
    );
    await Promise.race([publishing, broken.called]);
    // Whoever does not await has returned long before. Then nothing is made to reject: it would be an unhandled rejection,
    // and end the test run instead of telling what is wrong.
    const isOver = await Promise.race([publishing.then(() => true), sleep(PENDING_MS, false)]);
    if (isOver) broken.succeed();
    else broken.reject();
    const failure = await publishing;
    const problem = problemOf(failure, listener, broken);
    if (problem !== undefined) throw new Error(problem, { cause: failure });
  } finally {
    broken.mend();
  }
}

function problemOf(
  failure: unknown,
  listener: string,
  { error, name, wasCalled }: BrokenMethod,
): string | undefined {
  const isOurs = failure instanceof PublishFailedError;
  if (failure !== undefined && !isOurs) return `nothing was delivered: ${errorText(failure)}`;
  const own = isOurs && failure.failures.find((known) => known.listener === listener);
  if (own && leadsTo(own.error, error)) return undefined;
  if (!wasCalled()) {
    return `${name} was never called: does the payload make ${listener} call it, on this very object?`;
  }
  if (own) {
    return `${listener} failed, but not of ${name}: ${errorText(own.error)}`;
  }
  return (
    `${listener} does not await ${name}, or swallows its error: it succeeded all the same ` +
    '(await it or return its promise, and let its error pass)'
  );
}

interface BrokenMethod {
  readonly error: Error;
  readonly name: string;
  readonly called: Promise<void>;
  readonly wasCalled: () => boolean;
  readonly succeed: () => void;
  readonly reject: () => void;
  readonly mend: () => void;
}

/** Puts a method in its place that is pending until it is told how to end. */
function breakMethod(dependency: object, method: string): BrokenMethod {
  if (typeof Reflect.get(dependency, method) !== 'function')
    throw invalid(`method must be the name of a method of dependency, got ${method}`);
  const owned = Object.getOwnPropertyDescriptor(dependency, method);
  const error = new Error(`${method} was made to reject`);
  let wasCalled = false;
  const call = Promise.withResolvers<void>();
  const end = Promise.withResolvers<undefined>();
  end.promise.catch(() => {});
  Object.defineProperty(dependency, method, {
    value: () => {
      wasCalled = true;
      call.resolve();
      return end.promise;
    },
    configurable: true,
    writable: true,
  });
  return {
    error,
    name: `${dependency.constructor.name}.${method}`,
    called: call.promise,
    wasCalled: () => wasCalled,
    succeed: () => end.resolve(undefined),
    reject: () => end.reject(error),
    mend: () => {
      if (owned === undefined) Reflect.deleteProperty(dependency, method);
      else Object.defineProperty(dependency, method, owned);
    },
  };
}

/** Whether it is the error, or was made of it. */
function leadsTo(thrown: unknown, error: Error): boolean {
  let current: unknown = thrown;
  for (let depth = 0; depth < 8; depth++) {
    if (current === error) return true;
    if (typeof current !== 'object' || current === null) return false;
    if (String(Reflect.get(current, 'message')).includes(error.message)) return true;
    current = Reflect.get(current, 'cause');
  }
  return false;
}
