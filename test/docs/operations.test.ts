import { beforeAll, describe, expect, it } from '@jest/globals';
import { metrics } from '@opentelemetry/api';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { OnEvent } from '@nestjs/event-emitter';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';
import { BootstrapPublisher } from '../../src/index.js';
import { METRIC } from '../../src/telemetry/semantic-conventions.js';
import { InMemoryOutboxStore } from '../../src/testing.js';
import { freePort } from '../../tools/free-port.js';
import { startApp } from '../support/outbox-app.js';
import { ROOT } from './markdown.js';
import { readPromql } from './promql.js';

interface Rule {
  alert: string;
  expr: string;
  annotations: { summary: string; description: string };
}

interface Panel {
  title: string;
  targets?: { expr: string; legendFormat: string }[];
}

const read = (file: string) => readFileSync(path.join(ROOT, 'docs/operations', file), 'utf8');
const { groups } = parse(read('alerts.yml')) as { groups: { rules: Rule[] }[] };
const rules = groups.flatMap((group) => group.rules);
const dashboard = JSON.parse(read('grafana-dashboard.json')) as {
  panels: Panel[];
  templating: { list: { query: string | { query: string } }[] };
};
const targets = dashboard.panels.flatMap(({ title, targets: all = [] }) =>
  all.map(({ expr, legendFormat }) => ({ title, expr, legendFormat })),
);

// Prometheus adds them to whatever it scrapes.
const OF_PROMETHEUS = ['job', 'instance'];

/** The metrics that a running application shows Prometheus, each with its labels. */
let exported: Map<string, Set<string>>;

beforeAll(async () => {
  const port = await freePort();
  const exporter = new PrometheusExporter({ host: '127.0.0.1', port, preventServerStart: true });
  await exporter.startServer();
  const meters = new MeterProvider({ readers: [exporter] });
  metrics.setGlobalMeterProvider(meters);
  try {
    const text = await afterALife(async () => {
      const response = await fetch(`http://127.0.0.1:${port}/metrics`);
      return response.text();
    });
    exported = readExposition(text);
  } finally {
    metrics.disable();
    await meters.shutdown();
  }
});

/** Everything that is counted has happened once, and the application still runs: a closed one has no gauges. */
async function afterALife<T>(look: () => Promise<T>): Promise<T> {
  class Listener {
    @OnEvent('good')
    good(): void {}

    @OnEvent('bad')
    bad(): void {
      throw new Error('always');
    }
  }
  const store = new InMemoryOutboxStore();
  await using app = await startApp({
    outbox: { store, relay: {}, onStoreFailure: 'throw', retry: { maxRetries: 1 } },
    providers: [Listener],
  });
  const good = await app.outbox.enqueue('good', {});
  const bad = await app.outbox.enqueue('bad', {});
  await app.eventIn('COMPLETED', good.id);
  await app.eventIn('FAILED', bad.id);
  const gate = { key: 'k', eventType: 'bad', load: () => [1], payload: () => ({}) };
  const publisher = app.module.get(BootstrapPublisher);
  await expect(publisher.run({ ...gate, whenEmpty: 'leave' })).rejects.toThrow();
  store.enqueue = async () => {
    throw new Error('no database');
  };
  await expect(app.outbox.enqueue('good', {})).rejects.toThrow();
  return await look();
}

function readExposition(text: string): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const line of text.split('\n')) {
    const [, name, labels = ''] = /^([a-zA-Z_]\w*)(?:\{(.*)\})? /.exec(line) ?? [];
    if (name === undefined) continue;
    const known = found.get(name) ?? new Set();
    for (const [, label = ''] of labels.matchAll(/(\w+)="(?:[^"\\]|\\.)*"/g)) known.add(label);
    found.set(name, known);
  }
  return found;
}

/** What an expression names and the application does not export. */
function unknownIn(expression: string): string[] {
  const { selectors, grouping } = readPromql(
    expression.replaceAll('$__rate_interval', '5m').replaceAll('${datasource}', ''),
  );
  const labelsOf = (metric: string) => [...(exported.get(metric) ?? []), ...OF_PROMETHEUS];
  const ofAny = new Set(selectors.flatMap(({ metric }) => labelsOf(metric)));
  return [
    ...selectors.filter(({ metric }) => !exported.has(metric)).map(({ metric }) => metric),
    ...selectors.flatMap(({ metric, labels }) =>
      labels
        .filter((label) => !labelsOf(metric).includes(label))
        .map((label) => `${metric}{${label}}`),
    ),
    ...grouping.filter((label) => !ofAny.has(label)).map((label) => `by (${label})`),
  ];
}

describe('the alerts', () => {
  it.each(rules)('$alert asks for what is exported', ({ expr }) => {
    expect(readPromql(expr).selectors.length).toBeGreaterThan(0);
    expect(unknownIn(expr)).toEqual([]);
  });

  it.each(rules)('$alert shows labels that it has', ({ expr, annotations }) => {
    expect(annotations.summary).not.toBe('');
    const { grouping } = readPromql(expr);
    for (const [, label] of annotations.description.matchAll(/\$labels\.(\w+)/g))
      expect(grouping).toContain(label);
  });

  it('are there for everything that must not go unseen', () => {
    expect(rules.map(({ alert }) => alert).toSorted()).toEqual([
      'OutboxBacklogGrowing',
      'OutboxDeadLetters',
      'OutboxDueTooLong',
      'OutboxEnqueueFails',
      'OutboxGateClosed',
      'OutboxGateFails',
      'OutboxLeasesLost',
      'OutboxNoRelay',
      'OutboxReaped',
      'OutboxStoreDown',
      'OutboxUnheard',
    ]);
  });
});

describe('the dashboard', () => {
  it.each(targets)('asks for what is exported: $title', ({ expr, legendFormat }) => {
    expect(unknownIn(expr)).toEqual([]);
    const { grouping } = readPromql(expr.replaceAll('$__rate_interval', '5m'));
    for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
      expect(grouping).toContain(label);
  });

  it('chooses by a metric that is exported', () => {
    const queries = dashboard.templating.list.map(({ query }) =>
      typeof query === 'string' ? query : query.query,
    );
    const [, metric = ''] = /label_values\((\w+), job\)/.exec(queries.join(' ')) ?? [];
    expect(exported.has(metric)).toBe(true);
  });

  it('shows every metric there is', () => {
    const shown = new Set(
      targets.flatMap(({ expr }) =>
        readPromql(expr.replaceAll('$__rate_interval', '5m')).selectors.map(({ metric }) =>
          metric.replace(/_(total|bucket)$/, ''),
        ),
      ),
    );
    const all = Object.values(METRIC).map((metric) => metric.replaceAll('.', '_'));
    expect([...shown].toSorted()).toEqual(all.toSorted());
  });
});

it('an expression is read by a real parser', () => {
  expect(readPromql('sum by (a) (rate(x_total{b="1", c!=""}[5m])) > 0 or absent(y)')).toEqual({
    selectors: [
      { metric: 'x_total', labels: ['b', 'c'] },
      { metric: 'y', labels: [] },
    ],
    grouping: ['a'],
  });
  expect(() => readPromql('sum by (a (x)')).toThrow('no PromQL');
  expect(unknownIn('sum by (nothing) (outbox_relay_alive{never="1"}) or outbox_gone')).toEqual([
    'outbox_gone',
    'outbox_relay_alive{never}',
    'by (nothing)',
  ]);
});
