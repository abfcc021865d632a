import { afterEach, describe, expect, it } from '@jest/globals';
import {
  context,
  INVALID_SPAN_CONTEXT,
  metrics,
  propagation,
  trace,
  type ContextManager,
  type MeterProvider,
  type Span,
  type TextMapPropagator,
  type Tracer,
  type TracerProvider,
} from '@opentelemetry/api';
import { OnEvent } from '@nestjs/event-emitter';
import type { Delivered } from '../../src/index.js';
import { InMemoryOutboxStore } from '../../src/testing.js';
import { startApp } from '../support/outbox-app.js';
import { stopTelemetry } from '../support/telemetry.js';

const boom = (): never => {
  throw new Error('the SDK is broken');
};

/** Whatever is asked of it throws. */
function broken<T extends object>(sound: Partial<T> = {}): T {
  const get = (_target: object, key: string | symbol) =>
    Object.hasOwn(sound, key) ? sound[key as keyof T] : boom;
  return new Proxy({}, { get }) as T;
}

/** The test itself must get rid of it. */
const disable = () => broken<ContextManager>();

const brokenSpan = broken<Span>({ spanContext: () => INVALID_SPAN_CONTEXT });

const SDKS: Record<string, () => void> = {
  'cannot give a tracer or a meter': () => {
    trace.setGlobalTracerProvider(broken<TracerProvider>());
    metrics.setGlobalMeterProvider(broken<MeterProvider>());
  },
  'cannot start a span': () => {
    trace.setGlobalTracerProvider({ getTracer: () => broken() });
  },
  'cannot end a span': () => {
    trace.setGlobalTracerProvider({
      getTracer: () => broken<Tracer>({ startSpan: () => brokenSpan }),
    });
  },
  'cannot enter a context': () => {
    trace.setGlobalTracerProvider({
      getTracer: () => broken<Tracer>({ startSpan: () => brokenSpan }),
    });
    context.setGlobalContextManager(broken<ContextManager>({ disable }));
  },
  'throws when it leaves a context': () => {
    trace.setGlobalTracerProvider({
      getTracer: () => broken<Tracer>({ startSpan: () => brokenSpan }),
    });
    const manager = {
      disable,
      with: (_context: unknown, work: () => unknown) => {
        work();
        boom();
      },
    };
    context.setGlobalContextManager(broken<ContextManager>(manager as never));
  },
  'cannot propagate': () => {
    trace.setGlobalTracerProvider({
      getTracer: () => broken<Tracer>({ startSpan: () => brokenSpan }),
    });
    propagation.setGlobalPropagator(broken<TextMapPropagator>());
  },
  'cannot make an instrument': () => {
    metrics.setGlobalMeterProvider({ getMeter: () => broken() });
  },
  'cannot count': () => {
    const meter = {
      createCounter: () => broken(),
      createHistogram: () => broken(),
      createObservableGauge: () => broken(),
    };
    metrics.setGlobalMeterProvider({ getMeter: () => broken(meter as never) });
  },
  'cannot observe': () => {
    const sound = { add: () => {}, record: () => {} };
    const meter = {
      createCounter: () => sound,
      createHistogram: () => sound,
      createObservableGauge: () => sound,
    };
    metrics.setGlobalMeterProvider({ getMeter: () => broken(meter as never) });
  },
};

describe.each(Object.keys(SDKS))('an SDK that %s', (name) => {
  afterEach(stopTelemetry);

  it('breaks no enqueue and no delivery, and calls every listener once', async () => {
    SDKS[name]?.();
    const calls: string[] = [];
    class Listener {
      @OnEvent('good')
      good(): void {
        calls.push('good');
      }

      @OnEvent('bad')
      async bad({ _outbox }: Delivered): Promise<void> {
        calls.push('bad');
        throw new Error(`as always (${_outbox.attempt})`);
      }
    }
    await using app = await startApp({
      outbox: { store: new InMemoryOutboxStore(), relay: {}, retry: { maxRetries: 1 } },
      providers: [Listener],
    });
    const good = await app.outbox.enqueue('good', {}, { by: 'kim' });
    expect(good).toEqual({ id: good.id, stored: true });
    const [bad] = await app.outbox.enqueueMany([{ eventType: 'bad', payload: {} }]);
    await app.eventIn('COMPLETED', good.id);
    const failed = await app.eventIn('FAILED', bad!.id);
    expect(failed.lastError).toBe('Listener.bad: as always (1)');
    expect((await app.event(good.id)).metadata).toEqual({ by: 'kim' });
    expect(calls).toEqual(['good', 'bad']);
    const said = app.log.messages('warn').filter((line) => line.includes('OpenTelemetry'));
    expect(said).toEqual([
      'OpenTelemetry fails and telemetry is incomplete (said once); events are not affected: the SDK is broken',
    ]);
  });
});
