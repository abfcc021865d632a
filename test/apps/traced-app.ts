/**
 * A traced Nest application, as a process of its own: one that takes HTTP requests and enqueues, or one that relays.
 *
 * It is told what to be by the environment variable TRACED_APP (JSON, see `TracedAppSettings`), and says in lines of JSON
 * on stdout which spans have ended.
 */
import 'reflect-metadata';
import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { ExportResultCode, W3CTraceContextPropagator } from '@opentelemetry/core';
import {
  SimpleSpanProcessor,
  TracerProvider,
  type ReadableSpan,
  type SpanExporter,
} from '@opentelemetry/sdk-trace';
import { Controller, Injectable, Module, Post, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { OutboxModule, OutboxService, type Delivered } from 'nestjs-outbox-relay';
import pg from 'pg';

export interface TracedAppSettings {
  readonly database: string;
  readonly role: 'web' | 'relay';
}

/** What it says of a span. */
export interface SaidSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | undefined;
  readonly links: readonly string[];
  readonly failed: boolean;
  readonly attributes: Record<string, unknown>;
}

const settings = JSON.parse(process.env['TRACED_APP'] ?? '{}') as TracedAppSettings;

function say(message: { type: string } & Record<string, unknown>): void {
  console.log(JSON.stringify(message));
}

const saying: SpanExporter = {
  export(spans, done) {
    for (const span of spans) say({ type: 'span', ...said(span) });
    done({ code: ExportResultCode.SUCCESS });
  },
  shutdown: async () => {},
};

function said(span: ReadableSpan): SaidSpan {
  const { traceId, spanId } = span.spanContext();
  return {
    name: span.name,
    traceId,
    spanId,
    parentId: span.parentSpanContext?.spanId,
    links: span.links.map((link) => link.context.spanId),
    failed: span.status.code === SpanStatusCode.ERROR,
    attributes: span.attributes,
  };
}

trace.setGlobalTracerProvider(
  new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter: saying })] }),
);
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
propagation.setGlobalPropagator(new W3CTraceContextPropagator());

/** What an HTTP instrumentation does. */
function traced(request: IncomingMessage, response: ServerResponse, next: () => void): void {
  const parent = propagation.extract(context.active(), request.headers);
  const name = `${request.method} ${request.url}`;
  const span = trace.getTracer('http').startSpan(name, { kind: SpanKind.SERVER }, parent);
  response.once('finish', () => span.end());
  context.with(trace.setSpan(parent, span), next);
}

const pool = new pg.Pool({ connectionString: settings.database });
pool.on('error', () => {});

@Controller('quotes')
class QuotesController {
  constructor(private readonly outbox: OutboxService) {}

  @Post()
  async create(): Promise<{ id: string }> {
    const client = await pool.connect();
    try {
      await client.query('BEGIN');
      const tx = { tx: client };
      const { id } = await this.outbox.enqueue('quote.created', {}, { by: 'kim' }, tx);
      await client.query('COMMIT');
      return { id };
    } finally {
      client.release();
    }
  }
}

@Injectable()
class Notifications {
  constructor(private readonly outbox: OutboxService) {}

  @OnEvent('quote.created')
  async notify({ _outbox }: Delivered): Promise<void> {
    await trace.getTracer('gateway').startActiveSpan('send alimtalk', async (span) => {
      await pool.query('SELECT 1');
      span.end();
    });
    if (_outbox.attempt === 1) throw new Error('the gateway is down');
    await this.outbox.enqueue('quote.notified', {});
  }

  @OnEvent('quote.notified')
  async note(): Promise<void> {}
}

const isWeb = settings.role === 'web';
const relaying = { retry: { backoff: () => 20 } };

@Module({
  imports: [
    EventEmitterModule.forRoot(),
    OutboxModule.forRoot({ pool, ...(isWeb ? { relay: false } : relaying) }),
  ],
  controllers: isWeb ? [QuotesController as Type] : [],
  providers: isWeb ? [] : [Notifications],
})
class TracedAppModule {}

const app = await NestFactory.create(TracedAppModule, { logger: ['fatal', 'error'] });
app.use(traced);
await app.listen(0, '127.0.0.1');
const { port } = (app.getHttpServer() as Server).address() as AddressInfo;
say({ type: 'ready', port });

process.stdin.resume();
process.stdin.once('end', () => {
  void app
    .close()
    .then(() => pool.end())
    .then(() => say({ type: 'closed' }));
});
