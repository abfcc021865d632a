import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { NodeSDK } from '@opentelemetry/sdk-node';
import { SimpleSpanProcessor } from '@opentelemetry/sdk-trace';
import { TreeExporter } from './tree-exporter.js';

/** Starts the SDK. Before Nest makes the application: the outbox looks for it once. */
export function startTelemetry(port: number): { sdk: NodeSDK; traces: TreeExporter } {
  const traces = new TreeExporter();
  const sdk = new NodeSDK({
    serviceName: 'quotes',
    spanProcessors: [new SimpleSpanProcessor({ exporter: traces })],
    metricReaders: [new PrometheusExporter({ host: '127.0.0.1', port })],
  });
  sdk.start();
  return { sdk, traces };
}
