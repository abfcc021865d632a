import type * as OpenTelemetry from '@opentelemetry/api';
import type { Attributes, Context, Link, Span, SpanContext, Tracer } from '@opentelemetry/api';
import { errorText } from '../event/error-text.js';
import type { OutboxPayload } from '../event/payload.js';
import type { NewEvent } from '../store/outbox-store.js';
import type { BoundedNames } from './bounded-names.js';
import { failureName } from './failure-name.js';
import type { Guard } from './guard.js';
import { ATTRIBUTE, DELIVER, ENQUEUE, PROCESS, SEND, SYSTEM } from './semantic-conventions.js';
import type { TracedEvent } from './telemetry.js';

const LONGEST_STATUS = 500;

/** A span that has been started, and the context in which its work runs. */
export class StartedSpan {
  constructor(
    private readonly api: typeof OpenTelemetry,
    private readonly guard: Guard,
    private readonly span: Span,
    readonly context: Context,
  ) {}

  run<T>(work: () => T): T {
    return this.guard.within((enter) => this.api.context.with(this.context, enter), work);
  }

  end(failure?: { readonly error: unknown }): void {
    this.guard.run(() => {
      if (failure !== undefined) this.fail(failure.error);
      this.span.end();
    });
  }

  private fail(error: unknown): void {
    const message = errorText(error, LONGEST_STATUS);
    this.span.setAttribute(ATTRIBUTE.errorType, failureName(error));
    this.span.recordException(error instanceof Error ? error : message);
    this.span.setStatus({ code: this.api.SpanStatusCode.ERROR, message });
  }
}

/** Where a delivery belongs: the context that was stored with the event, or where it is delivered. */
export interface Origin {
  readonly context: Context;
  /** The span that stored the event. */
  readonly creation: SpanContext | undefined;
}

/** Starts spans, and carries their context through the metadata of events. */
export class Spans {
  constructor(
    private readonly api: typeof OpenTelemetry,
    private readonly tracer: Tracer,
    private readonly guard: Guard,
    private readonly destinations: BoundedNames,
  ) {}

  /** One for a call, however many events it stores. */
  startSend(events: readonly NewEvent[], eventType: string | undefined): StartedSpan | undefined {
    const single = events.length === 1 ? events[0] : undefined;
    return this.start(this.api.SpanKind.PRODUCER, ENQUEUE, eventType, {
      [ATTRIBUTE.operationType]: SEND,
      ...(single === undefined
        ? { [ATTRIBUTE.batchCount]: events.length }
        : { [ATTRIBUTE.messageId]: single.id }),
    });
  }

  /** @param listener `undefined`: nobody can tell which */
  startProcess(
    { id, eventType, retryCount }: TracedEvent,
    origin: Origin,
    listener: string | undefined,
  ): StartedSpan | undefined {
    const attributes = {
      [ATTRIBUTE.operationType]: PROCESS,
      [ATTRIBUTE.messageId]: id,
      [ATTRIBUTE.attempt]: retryCount + 1,
      ...(listener !== undefined && { [ATTRIBUTE.consumerGroup]: listener }),
    };
    return this.start(this.api.SpanKind.CONSUMER, DELIVER, eventType, attributes, origin);
  }

  /** The events with the span's context in their metadata, where the caller has none of that name. */
  withContext(events: readonly NewEvent[], { context }: StartedSpan): readonly NewEvent[] {
    const stamped = this.guard.run(() => {
      const carrier: Record<string, string> = {};
      this.api.propagation.inject(context, carrier);
      const entries = Object.entries(carrier).filter(isStorable);
      if (entries.length === 0) return events;
      return events.map((event) => ({ ...event, metadata: withEntries(event.metadata, entries) }));
    });
    return stamped ?? events;
  }

  originOf({ metadata }: TracedEvent): Origin {
    const { propagation, trace, context, ROOT_CONTEXT, isSpanContextValid } = this.api;
    const origin = this.guard.run((): Origin => {
      const stored = propagation.extract(ROOT_CONTEXT, metadata, TEXTS);
      const creation = trace.getSpanContext(stored);
      if (creation !== undefined && isSpanContextValid(creation))
        return { context: stored, creation };
      // Published without being stored, or stored by somebody who does not trace.
      return { context: context.active(), creation: undefined };
    });
    return origin ?? { context: ROOT_CONTEXT, creation: undefined };
  }

  run<T>({ context }: Origin, work: () => T): T {
    return this.guard.within((enter) => this.api.context.with(context, enter), work);
  }

  private start(
    kind: OpenTelemetry.SpanKind,
    operation: string,
    eventType: string | undefined,
    attributes: Attributes,
    origin?: Origin,
  ): StartedSpan | undefined {
    return this.guard.run(() => {
      const parent = origin?.context ?? this.api.context.active();
      const links: Link[] = origin?.creation === undefined ? [] : [{ context: origin.creation }];
      // A name stands for many spans, so that of a type that nobody knows beforehand does not belong in it.
      const name =
        eventType === undefined ? operation : `${operation} ${this.destinations.of(eventType)}`;
      const all = {
        [ATTRIBUTE.system]: SYSTEM,
        [ATTRIBUTE.operationName]: operation,
        ...(eventType !== undefined && { [ATTRIBUTE.destination]: eventType }),
        ...attributes,
      };
      const span = this.tracer.startSpan(name, { kind, attributes: all, links }, parent);
      const context = this.api.trace.setSpan(parent, span);
      return new StartedSpan(this.api, this.guard, span, context);
    });
  }
}

/** Metadata is JSON, and of whoever wrote it: only text can be a header. */
const TEXTS: OpenTelemetry.TextMapGetter<OutboxPayload> = {
  keys: (metadata) => Object.keys(metadata),
  get: (metadata, key) => {
    const value = Object.hasOwn(metadata, key) ? metadata[key] : undefined;
    return typeof value === 'string' ? value : undefined;
  },
};

function withEntries(
  metadata: OutboxPayload,
  entries: readonly (readonly [string, string])[],
): OutboxPayload {
  const own = entries.filter(([key]) => !isTaken(metadata, key));
  return { ...metadata, ...Object.fromEntries(own) };
}

/** What is the caller's stays; and the state of one trace does not go with the parent of another. */
function isTaken(metadata: OutboxPayload, key: string): boolean {
  if (Object.hasOwn(metadata, key)) return true;
  return key === 'tracestate' && Object.hasOwn(metadata, 'traceparent');
}

// Baggage is written by anybody: what PostgreSQL could not hold would cost the event.
function isStorable([key, value]: [string, unknown]): boolean {
  return (
    typeof value === 'string' &&
    [key, value].every((text) => !text.includes('\0') && text.isWellFormed())
  );
}
