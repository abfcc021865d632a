import type { KnownListener } from '../store/activity-store.js';
import type { Emitter, EventName } from './emitter.js';

/** One `@OnEvent` method. */
export interface ListenerMethod {
  /** `ClassName.method`: how the listener is known in `acknowledged_by`, errors and logs. */
  readonly name: string;
  /** The event or pattern it listens to. */
  readonly event: EventName;
  /** What the method is looked up on at delivery: the instance, or the prototype of a request-scoped class. */
  readonly target: object;
  readonly method: string;
}

/**
 * Which `@OnEvent` methods an event type must reach. It asks an emitter of the same kind and configuration as the
 * application's, so that wildcards, delimiters and namespaces mean here what they mean there.
 */
export class ListenerRegistry {
  private shadow: Emitter | undefined;
  private readonly markers = new Map<unknown, ListenerMethod>();
  private readonly cache = new Map<string, readonly ListenerMethod[]>();

  /** Starts empty, after the pattern of `emitter`. */
  reset(emitter: Emitter): void {
    const { wildcard = false, delimiter = '.' } = emitter;
    const Constructor = emitter.constructor as new (options: object) => Emitter;
    this.shadow = new Constructor({ wildcard, delimiter, maxListeners: 0 });
    this.markers.clear();
    this.cache.clear();
  }

  add(listener: ListenerMethod): void {
    const marker = (): void => {};
    this.markers.set(marker, listener);
    this.cache.clear();
    this.shadow?.on(listener.event, marker);
  }

  /** The listeners that `eventType` must reach; one that subscribed twice is there twice. */
  expected(eventType: string): readonly ListenerMethod[] {
    const known = this.cache.get(eventType);
    if (known !== undefined) return known;
    const matching = (this.shadow?.listeners(eventType) ?? []).flatMap(
      (marker) => this.markers.get(marker) ?? [],
    );
    // Event types come from data: a bounded memory of them.
    if (this.cache.size >= 1_000) this.cache.clear();
    this.cache.set(eventType, matching);
    return matching;
  }

  /** Every `@OnEvent` method of this process. */
  all(): readonly ListenerMethod[] {
    return [...this.markers.values()];
  }

  /** The same, as others may know them. */
  known(): KnownListener[] {
    return this.all().map(({ name, event }) => ({
      name: storable(name),
      event: storable(Array.isArray(event) ? event.map(String).join('.') : String(event)),
    }));
  }
}

/** jsonb holds neither NUL nor half of a surrogate pair, and one odd name must not cost the whole report. */
function storable(text: string): string {
  return text.replaceAll('\0', '\uFFFD').toWellFormed();
}
