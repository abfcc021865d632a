import 'reflect-metadata';
import { OutboxError } from '../event/outbox-error.js';
import { attemptFor } from './attempt.js';
import type { ListenerMethod } from './listener-registry.js';

type Method = (this: object | undefined, ...args: unknown[]) => unknown;

const OBSERVED = new WeakSet<Method>();

/**
 * Puts an observing function in the place of an `@OnEvent` method. Outside a delivery it changes nothing; inside,
 * the method's outcome is noted and not thrown.
 *
 * A Proxy, so that the method keeps its name, its length and whatever hangs on it; Reflect metadata is keyed by
 * identity and is copied over.
 */
export function observe(target: object, method: string): void {
  const owner = ownerOf(target, method);
  const original = (owner as Record<string, unknown>)[method];
  if (typeof original !== 'function' || OBSERVED.has(original as Method)) return;

  const nameOf = namesOf(method);
  const observed = new Proxy(original as Method, {
    apply(called, self: object | undefined, args: unknown[]) {
      const call = (): unknown => Reflect.apply(called, self, args);
      const attempt = attemptFor(args[0]);
      if (attempt === undefined || self == null) return call();
      const name = nameOf(self);
      return attempt.expects(name) ? attempt.observe(name, call) : call();
    },
  });
  for (const key of Reflect.getMetadataKeys(original) as unknown[]) {
    Reflect.defineMetadata(key, Reflect.getMetadata(key, original), observed);
  }
  if (!Reflect.set(owner, method, observed)) {
    throw new OutboxError(
      'SETUP',
      `${listenerName(target, method)} cannot be observed: its class is frozen, or the method is read-only`,
    );
  }
  OBSERVED.add(observed);
}

/** A spy put over the method after start (`jest.spyOn`) hides the observer: observe the spy. */
export function observeAgain({ target, method }: ListenerMethod): void {
  const current = (target as Record<string, unknown>)[method];
  if (typeof current === 'function' && !OBSERVED.has(current as Method)) observe(target, method);
}

export function listenerName(instance: object, method: string): string {
  return `${instance.constructor.name}.${method}`;
}

/** The same, made once for each class: it is asked for with every call. */
function namesOf(method: string): (instance: object) => string {
  const names = new WeakMap<object, string>();
  return (instance) => {
    const known = names.get(instance.constructor);
    if (known !== undefined) return known;
    const name = listenerName(instance, method);
    names.set(instance.constructor, name);
    return name;
  };
}

/** The object in the prototype chain that has the method: a base class is observed once for all its heirs. */
function ownerOf(target: object, method: string): object {
  for (
    let owner: object | null = target;
    owner !== null;
    owner = Object.getPrototypeOf(owner) as object | null
  ) {
    if (Object.hasOwn(owner, method)) return owner;
  }
  return target;
}
