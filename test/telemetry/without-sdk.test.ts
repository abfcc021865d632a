import { afterEach, describe, expect, it } from '@jest/globals';
import { INVALID_SPAN_CONTEXT, trace, type Tracer } from '@opentelemetry/api';
import { OnEvent } from '@nestjs/event-emitter';
import { InMemoryOutboxStore } from '../../src/testing.js';
import { openTelemetry } from '../../src/telemetry/open-telemetry.js';
import { NO_TELEMETRY } from '../../src/telemetry/telemetry.js';
import { RecordingLogger } from '../support/logger.js';
import { startApp } from '../support/outbox-app.js';
import { startTelemetry, stopTelemetry } from '../support/telemetry.js';

class Listener {
  @OnEvent('quote.created')
  notify(): void {}
}

describe('without an SDK', () => {
  it('nothing stands between the outbox and its work', async () => {
    const log = new RecordingLogger();
    expect(await openTelemetry('public.outbox_events', log)).toBe(NO_TELEMETRY);
    expect(log.lines).toEqual([]);
  });

  it('metadata is stored as the caller gave it', async () => {
    await using app = await startApp({
      outbox: { store: new InMemoryOutboxStore() },
      providers: [Listener],
    });
    const { id } = await app.outbox.enqueue('quote.created', {}, { by: 'kim' });
    await app.outbox.processPending();
    expect(await app.event(id)).toMatchObject({ status: 'COMPLETED', metadata: { by: 'kim' } });
  });
});

describe('with telemetry: false', () => {
  it('there are no spans, no metrics and no keys in the metadata, whatever is registered', async () => {
    await using telemetry = startTelemetry();
    await using app = await startApp({
      outbox: { store: new InMemoryOutboxStore(), telemetry: false, relay: {} },
      providers: [Listener],
    });
    const { id } = await app.outbox.enqueue('quote.created', {}, { by: 'kim' });
    await app.eventIn('COMPLETED', id);
    expect((await app.event(id)).metadata).toEqual({ by: 'kim' });
    expect(telemetry.spans()).toEqual([]);
    expect(await telemetry.names()).toEqual([]);
  });
});

describe('with an SDK for traces alone', () => {
  afterEach(stopTelemetry);

  it('events are traced', async () => {
    const names: string[] = [];
    const tracer: Pick<Tracer, 'startSpan'> = {
      startSpan: (name) => {
        names.push(name);
        return trace.wrapSpanContext(INVALID_SPAN_CONTEXT);
      },
    };
    trace.setGlobalTracerProvider({ getTracer: () => tracer as Tracer });
    await using app = await startApp({
      outbox: { store: new InMemoryOutboxStore(), relay: {} },
      providers: [Listener],
    });
    const { id } = await app.outbox.enqueue('quote.created', {});
    await app.eventIn('COMPLETED', id);
    expect(names).toEqual(['enqueue quote.created', 'deliver quote.created']);
  });
});
