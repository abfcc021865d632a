import { SpanStatusCode } from '@opentelemetry/api';
import { ExportResultCode } from '@opentelemetry/core';
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace';

/** Keeps spans, to print a trace as a tree. In production, an OTLP exporter is in its place. */
export class TreeExporter implements SpanExporter {
  readonly spans: ReadableSpan[] = [];

  export(spans: ReadableSpan[], done: (result: { code: ExportResultCode }) => void): void {
    this.spans.push(...spans);
    done({ code: ExportResultCode.SUCCESS });
  }

  async shutdown(): Promise<void> {}

  /** Every span below `parent` on a line of its own. */
  below(parent: string | undefined, depth = 0): string[] {
    const children = this.spans.filter(({ parentSpanContext }) =>
      parent === undefined ? parentSpanContext === undefined : parentSpanContext?.spanId === parent,
    );
    return children.flatMap((span) =>
      ['  '.repeat(depth) + lineOf(span)].concat(this.below(span.spanContext().spanId, depth + 1)),
    );
  }
}

function lineOf({ name, attributes, status, duration: [seconds, nanos] }: ReadableSpan): string {
  const words = [name, `${Math.round(seconds * 1_000 + nanos / 1e6)} ms`];
  const listener = attributes['messaging.consumer.group.name'];
  const attempt = attributes['outbox.attempt'];
  if (typeof listener === 'string') words.push(`to ${listener}, attempt ${Number(attempt)}`);
  if (status.code === SpanStatusCode.ERROR) words.push(`✗ ${status.message}`);
  return words.join('  ');
}
