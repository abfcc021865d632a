import type { INestApplicationContext } from '@nestjs/common';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { BootstrapPublisher } from './bootstrap/bootstrap.publisher.js';
import { PublishFailedError } from './bootstrap/gate-errors.js';
import type { PayloadOf } from './delivery/outbox-context.js';
import { errorText } from './event/error-text.js';
import { invalid } from './event/outbox-error.js';

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
  let failure: unknown;
  try {
    await publisher.publishAsync(eventType, payload);
  } catch (error) {
    failure = error;
  } finally {
    // What was left behind rejects in the turns that follow.
    await nextTurn();
    await nextTurn();
    broken.mend();
  }
  const problem = problemOf(failure, listener, broken);
  if (problem !== undefined) throw new Error(problem, { cause: failure });
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
    `${listener} does not await ${name}: that rejected, and the listener succeeded all the same ` +
    '(await it or return its promise, and let its error pass)'
  );
}

interface BrokenMethod {
  readonly error: Error;
  readonly name: string;
  readonly wasCalled: () => boolean;
  readonly mend: () => void;
}

function breakMethod(dependency: object, method: string): BrokenMethod {
  const original: unknown = Reflect.get(dependency, method);
  if (typeof original !== 'function')
    throw invalid(`method must be the name of a method of dependency, got ${method}`);
  const owned = Object.getOwnPropertyDescriptor(dependency, method);
  const error = new Error(`${method} was made to reject`);
  let called = false;
  Object.defineProperty(dependency, method, {
    value: async () => {
      called = true;
      // Not at once: a listener that does not wait has returned by then.
      await nextTurn();
      throw error;
    },
    configurable: true,
    writable: true,
  });
  // A listener that does not await leaves it unhandled: that is what is to be told, and not by ending the test run.
  const swallow = (reason: unknown): void => {
    if (reason !== error) throw reason;
  };
  process.on('unhandledRejection', swallow);
  return {
    error,
    name: `${dependency.constructor.name}.${method}`,
    wasCalled: () => called,
    mend: () => {
      process.off('unhandledRejection', swallow);
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
