import { context, metrics, propagation, trace, type TextMapPropagator } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  CompositePropagator,
  W3CBaggagePropagator,
  W3CTraceContextPropagator,
} from '@opentelemetry/core';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  InMemorySpanExporter,
  SimpleSpanProcessor,
  TracerProvider,
  type ReadableSpan,
} from '@opentelemetry/sdk-trace';

/** One number of a metric, with what it is about. A histogram's is how many there were. */
export interface Measured {
  value: number;
  attributes: Record<string, unknown>;
  /** Of a histogram. */
  sum?: number | undefined;
}

/** The real SDK, registered globally as an application does it, and taken back at the end of the test. */
export interface TestTelemetry extends AsyncDisposable {
  /** Spans that have ended, oldest first. */
  spans(): ReadableSpan[];
  /** The one of that name. Throws if there is none, or another. */
  span(name: string): ReadableSpan;
  /** Collects now. No attributes but these are needed to match. */
  measured(metric: string, attributes?: Record<string, unknown>): Promise<Measured[]>;
  /** The names of all metrics that were collected. */
  names(): Promise<string[]>;
}

const W3C = new CompositePropagator({
  propagators: [new W3CTraceContextPropagator(), new W3CBaggagePropagator()],
});

export function startTelemetry({
  propagator = W3C,
}: { propagator?: TextMapPropagator } = {}): TestTelemetry {
  const spanExporter = new InMemorySpanExporter();
  const tracers = new TracerProvider({
    spanProcessors: [new SimpleSpanProcessor({ exporter: spanExporter })],
  });
  const metricExporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({
    exporter: metricExporter,
    exportIntervalMillis: 3_600_000,
  });
  const meters = new MeterProvider({ readers: [reader] });
  trace.setGlobalTracerProvider(tracers);
  metrics.setGlobalMeterProvider(meters);
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(propagator);

  const collect = async () => {
    const { resourceMetrics } = await reader.collect();
    return resourceMetrics.scopeMetrics.flatMap(({ metrics: all }) => all);
  };
  return {
    spans: () => spanExporter.getFinishedSpans(),
    span(name) {
      const found = spanExporter.getFinishedSpans().filter((span) => span.name === name);
      if (found.length !== 1) {
        const names = spanExporter.getFinishedSpans().map((span) => span.name);
        throw new Error(`${found.length} spans ${name} among ${JSON.stringify(names)}`);
      }
      return found[0]!;
    },
    async measured(metric, attributes = {}) {
      const points = (await collect()).find(({ descriptor }) => descriptor.name === metric);
      return (points?.dataPoints ?? [])
        .filter((point) =>
          Object.entries(attributes).every(([key, value]) => point.attributes[key] === value),
        )
        .map(({ value, attributes: own }) =>
          typeof value === 'number'
            ? { value, attributes: own }
            : {
                value: value.count,
                attributes: own,
                sum: 'sum' in value ? value.sum : undefined,
              },
        );
    },
    names: async () => (await collect()).map(({ descriptor }) => descriptor.name),
    async [Symbol.asyncDispose]() {
      stopTelemetry();
      await Promise.all([tracers.shutdown(), meters.shutdown()]);
    },
  };
}

/** As if no SDK had ever been registered. */
export function stopTelemetry(): void {
  for (const api of [trace, metrics, context, propagation]) api.disable();
}
