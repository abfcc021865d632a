import { expect, it } from '@jest/globals';
import { migrateOutbox } from '../../src/index.js';
import type { SaidSpan, TracedAppSettings } from '../apps/traced-app.js';
import { startChild, type Child } from '../support/child.js';
import { createDatabase } from '../support/database.js';
import { until } from '../support/until.js';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const CALLER = 'b7ad6b7169203331';

const start = (settings: TracedAppSettings) =>
  startChild('traced-app', { env: { TRACED_APP: JSON.stringify(settings) } });

const spansOf = ({ messages }: Child) =>
  messages.filter(({ type }) => type === 'span') as unknown as SaidSpan[];

it('one trace leads from the HTTP request through another process and a retry to the notification', async () => {
  await using database = await createDatabase();
  await migrateOutbox({ database: database.pool });
  await using web = start({ database: database.connectionString, role: 'web' });
  await using relay = start({ database: database.connectionString, role: 'relay' });
  const { port } = await web.message('ready');
  await relay.message('ready');

  const answer = await fetch(`http://127.0.0.1:${String(port)}/quotes`, {
    method: 'POST',
    headers: { traceparent: `00-${TRACE}-${CALLER}-01` },
  });
  const { id } = (await answer.json()) as { id: string };
  await until(() => spansOf(relay).some(({ name }) => name === 'deliver quote.notified'), {
    what: 'the second event is delivered',
  });
  await web.kill();
  await relay.kill();

  const spans = [...spansOf(web), ...spansOf(relay)];
  expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([TRACE]));
  expect(tree(spans, CALLER)).toEqual([
    'POST /quotes',
    '  enqueue quote.created',
    '    deliver quote.created 1 failed',
    '      send alimtalk',
    '    deliver quote.created 2',
    '      send alimtalk',
    '      enqueue quote.notified',
    '        deliver quote.notified 1',
  ]);
  const enqueued = spansOf(web).find(({ name }) => name === 'enqueue quote.created');
  const delivered = spansOf(relay).filter(({ name }) => name === 'deliver quote.created');
  for (const { links, attributes } of delivered) {
    expect(links).toEqual([enqueued?.spanId]);
    expect(attributes['messaging.message.id']).toBe(id);
  }
  await database.terminateBackends();
});

it('without @opentelemetry/api the application starts and delivers as ever', async () => {
  await using database = await createDatabase();
  const hidden = `import { registerHooks } from 'node:module';
    registerHooks({
      resolve(specifier, context, next) {
        // pg-boss brings it along; an older one does not.
        const hides = specifier === '@opentelemetry/api' && !context.parentURL?.includes('/pg-boss/');
        return next(hides ? '@opentelemetry/not-installed' : specifier, context);
      },
    });`;
  await database.query(
    'CREATE TABLE ledger (event uuid, n int, attempt int, app text, point text)',
  );
  await using app = startChild('relay-app', {
    env: {
      RELAY_APP: JSON.stringify({
        database: database.connectionString,
        migrate: true,
        boss: 'hand',
      }),
      NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(hidden)}`,
    },
  });
  await app.message('ready');
  app.send(JSON.stringify({ do: 'enqueue', work: [{ n: 1 }] }));
  await app.message('finished');
  app.send(JSON.stringify({ do: 'close' }));
  await app.message('closed');
  await app.exited;
  expect(app.stderr).toBe('');
  expect(app.stdout).not.toContain('opentelemetry');
});

/** Each span on a line, below its parent. */
function tree(spans: readonly SaidSpan[], parent: string, depth = 0): string[] {
  const children = spans.filter(({ parentId }) => parentId === parent);
  return children.flatMap((span) =>
    ['  '.repeat(depth) + shown(span)].concat(tree(spans, span.spanId, depth + 1)),
  );
}

function shown({ name, failed, attributes }: SaidSpan): string {
  const attempt = attributes['outbox.attempt'];
  return `${name}${typeof attempt === 'number' ? ` ${attempt}` : ''}${failed ? ' failed' : ''}`;
}
