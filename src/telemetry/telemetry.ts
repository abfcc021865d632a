import type { FailureKind } from '../store/sentinel-store.js';
import type { ClaimedEvent, NewEvent, Settlement } from '../store/outbox-store.js';
import type { GaugeSource } from './gauge-reader.js';

/** What telemetry reads of an event on its way to its listeners. */
export type TracedEvent = Pick<ClaimedEvent, 'id' | 'eventType' | 'metadata' | 'retryCount'>;

/** How a delivery ended: every listener succeeded, one did not, or it was broken off from outside. */
export type DeliveryEnd = 'delivered' | 'failed' | 'cancelled';

/** One call of one listener. */
export interface ListenerTelemetry {
  /** Runs the listener, so that what it calls and enqueues belongs to it. Throws what it throws. */
  run<T>(listener: () => T): T;
  succeeded(): void;
  failed(error: unknown): void;
}

/** One delivery of one event. */
export interface DeliveryTelemetry {
  /** Runs the emit in the context that was stored with the event. Throws what it throws. */
  run<T>(emit: () => T): T;
  /** A listener is about to be called. Without a name: nobody can tell which. */
  begin(listener?: string): ListenerTelemetry;
  end(how: DeliveryEnd): void;
}

/**
 * Where the outbox tells what it does, in traces and metrics. Nothing here throws of its own accord: whoever watches
 * must not break what is watched.
 */
export interface Telemetry {
  /**
   * Stores events.
   * @param store gets them as they are to be stored, with the context of the trace in their metadata; it says by
   *   `failed` what went wrong when it does not throw it
   */
  sending<T>(
    events: readonly NewEvent[],
    store: (events: readonly NewEvent[], failed: (error: unknown) => void) => Promise<T>,
  ): Promise<T>;
  /** An event is about to be delivered. `undefined`: nobody wants to know. */
  delivering(event: TracedEvent): DeliveryTelemetry | undefined;
  /** Every listener has succeeded. @param now by the database's clock */
  delivered(event: ClaimedEvent, now: Date): void;
  /** It is stored what became of an event. */
  settled(eventType: string, outcome: Settlement['outcome']): void;
  leaseLost(): void;
  /** Events whose relay had died over them. */
  reaped(count: number): void;
  gateFailed(kind: FailureKind, closed: boolean): void;
  /** Reads the gauges whenever they are collected. @returns how to stop that */
  observe(source: GaugeSource): () => void;
}

const told = (): void => {};

/** Nobody watches: costs nothing. */
export const NO_TELEMETRY: Telemetry = Object.freeze<Telemetry>({
  sending: (events, store) => store(events, told),
  delivering: () => undefined,
  delivered: told,
  settled: told,
  leaseLost: told,
  reaped: told,
  gateFailed: told,
  observe: () => told,
});
