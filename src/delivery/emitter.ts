/** What delivery needs of EventEmitter2: its shape. */
export interface Emitter {
  emit(eventType: string, payload: unknown): boolean;
  emitAsync(eventType: string, payload: unknown): Promise<unknown[]>;
  on(event: EventName, listener: (...args: unknown[]) => unknown): unknown;
  listeners(eventType: string): readonly unknown[];
  /** EventEmitter2 keeps its configuration on itself; these two decide which listeners an event reaches. */
  readonly wildcard?: boolean;
  readonly delimiter?: string;
}

/** What `@OnEvent` takes. */
export type EventName = string | symbol | (string | symbol)[];
