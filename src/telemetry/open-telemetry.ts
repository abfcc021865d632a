import type * as OpenTelemetry from '@opentelemetry/api';
import type { Meter, Tracer } from '@opentelemetry/api';
import { errorText } from '../event/error-text.js';
import type { FailureKind } from '../store/sentinel-store.js';
import type { ClaimedEvent, NewEvent, Settlement } from '../store/outbox-store.js';
import { BoundedNames } from './bounded-names.js';
import type { GaugeSource } from './gauge-reader.js';
import { Guard, type GuardLog } from './guard.js';
import { Meters } from './meters.js';
import { SYSTEM } from './semantic-conventions.js';
import { Spans, type Origin, type StartedSpan } from './spans.js';
import {
  NO_TELEMETRY,
  type DeliveryEnd,
  type DeliveryTelemetry,
  type ListenerTelemetry,
  type Telemetry,
  type TracedEvent,
} from './telemetry.js';

// Event types come from data.
const MOST_EVENT_TYPES = 200;

/**
 * Telemetry by OpenTelemetry, where `@opentelemetry/api` is installed and an SDK is registered by now; else
 * {@link NO_TELEMETRY}. Never rejects.
 *
 * @param table schema and table, to tell two outboxes apart
 */
export async function openTelemetry(table: string, log: GuardLog): Promise<Telemetry> {
  const api = await load(log);
  if (api === undefined) return NO_TELEMETRY;
  const guard = new Guard(log);
  const watched = guard.run(() => {
    const tracer = tracerOf(api);
    const meter = meterOf(api);
    if (tracer === undefined && meter === undefined) return undefined;
    const destinations = new BoundedNames(MOST_EVENT_TYPES);
    return new Watched(
      tracer && new Spans(api, tracer, guard, destinations),
      meter && new Meters(meter, guard, destinations, table),
      guard,
    );
  });
  return watched ?? NO_TELEMETRY;
}

/** `undefined` where it is not installed: it is an optional peer. */
async function load(log: GuardLog): Promise<typeof OpenTelemetry | undefined> {
  try {
    return await import('@opentelemetry/api');
  } catch (error) {
    if (!isMissing(error))
      log.warn(`@opentelemetry/api cannot be loaded, there is no telemetry: ${errorText(error)}`);
    return undefined;
  }
}

function isMissing(error: unknown): boolean {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : '';
  return code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND';
}

/** `undefined` if no SDK is registered: its stand-in would make a span object for each call all the same. */
function tracerOf({ trace }: typeof OpenTelemetry): Tracer | undefined {
  const provider = trace.getTracerProvider() as OpenTelemetry.TracerProvider & {
    getDelegateTracer?: (name: string) => Tracer | undefined;
  };
  // Registered providers stand behind a proxy; one without a delegate has nobody behind it.
  return provider.getDelegateTracer === undefined
    ? provider.getTracer(SYSTEM)
    : provider.getDelegateTracer(SYSTEM);
}

function meterOf({ metrics, createNoopMeter }: typeof OpenTelemetry): Meter | undefined {
  const meter = metrics.getMeter(SYSTEM);
  return meter === createNoopMeter() ? undefined : meter;
}

class Watched implements Telemetry {
  constructor(
    private readonly spans: Spans | undefined,
    private readonly meters: Meters | undefined,
    private readonly guard: Guard,
  ) {}

  async sending<T>(
    events: readonly NewEvent[],
    store: (events: readonly NewEvent[], failed: (error: unknown) => void) => Promise<T>,
  ): Promise<T> {
    const startedAt = performance.now();
    const span = this.spans?.startSend(events, commonType(events));
    const traced = span === undefined ? events : this.spans?.withContext(events, span);
    const failures: { readonly error: unknown }[] = [];
    const failed = (error: unknown): void => void failures.push({ error });
    const work = (): Promise<T> => store(traced ?? events, failed);
    try {
      return await (span === undefined ? work() : span.run(work));
    } catch (error) {
      failed(error);
      throw error;
    } finally {
      span?.end(failures[0]);
      this.meters?.sent(events, secondsSince(startedAt), failures[0]);
    }
  }

  delivering(event: TracedEvent): DeliveryTelemetry {
    return new WatchedDelivery(this.spans, this.meters, event);
  }

  delivered(event: ClaimedEvent, now: Date): void {
    this.meters?.delivered(event, now);
  }

  settled(eventType: string, outcome: Settlement['outcome']): void {
    this.meters?.settled(eventType, outcome);
  }

  leaseLost(): void {
    this.meters?.leaseLost();
  }

  reaped(count: number): void {
    this.meters?.reaped(count);
  }

  gateFailed(kind: FailureKind, closed: boolean): void {
    this.meters?.gateFailed(kind, closed);
  }

  observe(source: GaugeSource): () => void {
    return this.guard.run(() => this.meters?.observe(source)) ?? NO_TELEMETRY.observe(source);
  }
}

class WatchedDelivery implements DeliveryTelemetry {
  private readonly startedAt = performance.now();
  private readonly origin: Origin | undefined;

  constructor(
    private readonly spans: Spans | undefined,
    private readonly meters: Meters | undefined,
    private readonly event: TracedEvent,
  ) {
    this.origin = spans?.originOf(event);
  }

  run<T>(emit: () => T): T {
    if (this.spans === undefined || this.origin === undefined) return emit();
    return this.spans.run(this.origin, emit);
  }

  begin(listener?: string): ListenerTelemetry {
    const span = this.origin && this.spans?.startProcess(this.event, this.origin, listener);
    return new WatchedListener(this.meters, this.event.eventType, listener, span);
  }

  end(how: DeliveryEnd): void {
    this.meters?.deliveryEnded(this.event.eventType, how, secondsSince(this.startedAt));
  }
}

class WatchedListener implements ListenerTelemetry {
  private readonly startedAt = performance.now();

  constructor(
    private readonly meters: Meters | undefined,
    private readonly eventType: string,
    private readonly listener: string | undefined,
    private readonly span: StartedSpan | undefined,
  ) {}

  run<T>(listener: () => T): T {
    return this.span === undefined ? listener() : this.span.run(listener);
  }

  succeeded(): void {
    this.end();
  }

  failed(error: unknown): void {
    this.end({ error });
  }

  private end(failure?: { readonly error: unknown }): void {
    this.span?.end(failure);
    this.meters?.processed(this.eventType, this.listener, secondsSince(this.startedAt), failure);
  }
}

/** The type of all of them; `undefined` if they are of several. */
function commonType([first, ...others]: readonly NewEvent[]): string | undefined {
  const eventType = first?.eventType;
  return others.every((event) => event.eventType === eventType) ? eventType : undefined;
}

function secondsSince(startedAt: number): number {
  return (performance.now() - startedAt) / 1_000;
}
