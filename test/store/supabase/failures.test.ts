import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { inspect } from 'node:util';
import type { Settlement } from '../../../src/store/outbox-store.js';
import { sqlNames } from '../../../src/store/postgres/sql-names.js';
import { openClient } from '../../../src/store/supabase/supabase-client.js';
import { SupabaseOutboxStore } from '../../../src/store/supabase/supabase-outbox-store.js';
import { SupabaseRpc } from '../../../src/store/supabase/supabase-rpc.js';
import { newEvent, retry } from '../conformance/subject.js';

type Answer = (response: ServerResponse) => void;

const PATIENCE = { answerWithinMs: 150, waitsMs: [1, 1] };
const MOST_TRIES = 3;
const TOKEN = '00000000-0000-4000-8000-000000000001';
const CLAIM = { limit: 10, leaseMs: 60_000 };
const GATE = { key: 'k', version: '1', leaseToken: TOKEN };
const GATE_CLAIM = { ...GATE, heedStamp: true, leaseMs: 60_000 };
const GATE_FAILURE = {
  failures: 2,
  sameFailures: 1,
  error: 'x',
  kind: 'unknown',
  closeMs: null,
} as const;
const SENTINEL_ROW = {
  key: 'k',
  version: '1',
  stamped_at: null,
  failures: 2,
  same_failures: 1,
  last_error: 'x',
  last_error_kind: 'unknown',
  failed_at: '2026-01-01T00:00:00.123456+00:00',
  closed_at: null,
  closed_until: null,
  closings: 0,
  running: false,
  closed: false,
};

// A server that answers what it is told, and remembers what it was asked.
const asked: { path: string; method: string; body: unknown }[] = [];
let answers: Answer[] = [];
let url: string;
let store: SupabaseOutboxStore;
const server = createServer((request: IncomingMessage, response) => {
  void text(request).then((body) => {
    const { url: path = '', method = '' } = request;
    asked.push({ path, method, body: body === '' ? undefined : JSON.parse(body) });
    // The last one goes on answering.
    const answer = answers.length > 1 ? answers.shift() : answers[0];
    answer?.(response);
  });
});

beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const names = sqlNames();
  const client = openClient({ url, serviceRoleKey: 'sb_secret_x' });
  store = new SupabaseOutboxStore(new SupabaseRpc(() => client, names, PATIENCE), names);
});
beforeEach(() => {
  asked.length = 0;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const json =
  (status: number, body: unknown): Answer =>
  (response) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
const empty =
  (status: number): Answer =>
  (response) =>
    response.writeHead(status).end();
const html =
  (status: number): Answer =>
  (response) =>
    response.writeHead(status, { 'content-type': 'text/html' }).end('<html>secret page</html>');
const redirect: Answer = (response) =>
  response.writeHead(301, { location: `${url}/elsewhere` }).end();
const hangUp: Answer = (response) => response.socket?.destroy();
const silence: Answer = () => {};
const stall: Answer = (response) =>
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': 100 }).write('[');
const sqlError = (status: number, code: string): Answer =>
  json(status, { code, message: 'it failed' });

const completed: Settlement = { id: newEvent().id, leaseToken: TOKEN, outcome: 'completed' };
const filter = { eventType: 'a', limit: 10 };

const VERBS: Record<string, () => Promise<unknown>> = {
  enqueue: () => store.enqueue([newEvent()]),
  claim: () => store.claim(CLAIM),
  claimOthers: () => store.claimOthers({ ...CLAIM, otherThan: [] }),
  settle: () => store.settle([completed]),
  settleAndClaim: () => store.settleAndClaim([completed], CLAIM),
  'settleAndClaim with nothing to settle': () => store.settleAndClaim([], CLAIM),
  renew: () => store.renew([completed], 60_000),
  reap: () => store.reap(CLAIM),
  redrive: () => store.redrive({ ...filter, firstDelayMs: 0, spacingMs: 0 }),
  discard: () => store.discard(filter),
  prune: () => store.prune({ status: 'COMPLETED', olderThanMs: 0, limit: 10 }),
  deadLetters: () => store.deadLetters(filter),
  countDeadLetters: () => store.countDeadLetters({}),
  find: () => store.find(TOKEN),
  stats: () => store.stats(),
  check: () => store.check(),
  'claim of a gate': () => store.sentinels.claim(GATE_CLAIM),
  'renew of a gate': () => store.sentinels.renew(GATE, 60_000),
  'stamp of a gate': () => store.sentinels.stamp(GATE, true),
  'fail of a gate': () => store.sentinels.fail(GATE, GATE_FAILURE),
  'release of a gate': () => store.sentinels.release(GATE),
  'reopen of a gate': () => store.sentinels.reopen('k', undefined),
  'list of gates': () => store.sentinels.list({ limit: 10 }),
  'stats of gates': () => store.sentinels.stats(),
};

/** Verbs that must not be done again after an answer was lost. */
const ONCE = ['claim', 'claimOthers', 'reap', 'redrive', 'discard', 'reopen of a gate'];

describe.each(Object.entries(VERBS))('%s', (_, call) => {
  it.each<[string, Answer, string | RegExp]>([
    ['a connection that breaks', hangUp, /no answer: .*is the URL right/],
    ['a redirect', redirect, 'no answer: TypeError: fetch failed, unexpected redirect'],
    [
      'a refused key',
      json(401, { message: 'Invalid API key' }),
      /Invalid API key .*the key was refused/,
    ],
    ['a conflict', sqlError(409, '23505'), 'it failed (status 409, 23505)'],
    ['an error of the server', sqlError(500, 'XX000'), 'it failed (status 500, XX000)'],
    ['a denied function', sqlError(403, '42501'), 'the key must be the secret one'],
    [
      'a schema that is not exposed',
      sqlError(406, 'PGRST106'),
      'add the schema to the exposed ones',
    ],
    [
      'an empty 404, which supabase-js takes for success',
      empty(404),
      /is the URL that of the project/,
    ],
    ['a 200 without a body', empty(200), 'is the URL that of the project'],
    ['a 204', empty(204), 'is the URL that of the project'],
    ['null', json(200, null), 'is the URL that of the project'],
    ['an object of another kind', json(200, { ok: true }), 'is the URL that of the project'],
    ['a list of other things', json(200, [{ a: 1 }]), 'is the URL that of the project'],
    [
      'a page of HTML with status 200',
      html(200),
      /an HTML page instead of an answer .*is the URL that of/,
    ],
    ['a page of HTML with status 502', html(502), 'an HTML page instead of an answer (status 502)'],
  ])('rejects after %s, in words', async (_what, answer, message) => {
    answers = [answer];
    await expect(call()).rejects.toThrow(message);
    expect(asked.length).toBeLessThanOrEqual(2 * MOST_TRIES);
  });
});

it.each([
  ['never comes', silence],
  ['stops in the middle', stall],
])('nothing waits for an answer that %s', async (_, answer) => {
  answers = [answer];
  const from = performance.now();
  const outcomes = await Promise.allSettled(Object.values(VERBS).map(async (call) => call()));
  expect(performance.now() - from).toBeLessThan(5_000);
  for (const outcome of outcomes) {
    expect(outcome).toMatchObject({
      status: 'rejected',
      reason: { message: expect.stringMatching(/no answer: .*time/i) },
    });
  }
});

const UNDONE: [string, Answer][] = [
  ...(['40P01', '55P03', '57014', '53300', '53200'] as const).map((code): [string, Answer] => [
    code,
    sqlError(500, code),
  ]),
  ...(['PGRST000', 'PGRST002', 'PGRST003'] as const).map((code): [string, Answer] => [
    code,
    sqlError(503, code),
  ]),
  ['PGRST202 (right after a migration)', sqlError(404, 'PGRST202')],
  ['status 429', html(429)],
];
const UNKNOWN: [string, Answer][] = [
  ['no answer', hangUp],
  ...[502, 503, 504, 520, 522, 524].map((status): [string, Answer] => [
    `status ${status}`,
    html(status),
  ]),
  ['08006', sqlError(500, '08006')],
  ['PGRST001', sqlError(503, 'PGRST001')],
];

describe('what is tried again', () => {
  const idsOf = () => json(200, [completed.id]);
  it.each([...UNDONE, ...UNKNOWN])('an enqueue after %s', async (_, answer) => {
    const event = newEvent();
    answers = [answer, answer, json(200, [event.id])];
    expect(await store.enqueue([event])).toEqual([event.id]);
    expect(asked).toHaveLength(3);
    expect(asked[2]).toEqual(asked[0]);
  });

  it.each(UNDONE)('a claim after %s, which has claimed nothing', async (_, answer) => {
    answers = [answer, json(200, { claimed: [] })];
    expect(await store.claim(CLAIM)).toEqual([]);
    expect(asked).toHaveLength(2);
  });

  it.each(ONCE.flatMap((verb) => UNKNOWN.map(([what, answer]) => [verb, what, answer] as const)))(
    'not %s after %s: it may have been done',
    async (verb, _, answer) => {
      answers = [answer];
      await expect(VERBS[verb]!()).rejects.toThrow(/^Supabase, outbox_/);
      expect(asked).toHaveLength(1);
    },
  );

  it('only so often', async () => {
    answers = [html(503)];
    await expect(store.enqueue([newEvent()])).rejects.toThrow('status 503');
    expect(asked).toHaveLength(MOST_TRIES);
  });

  it.each([
    ['22P05', 400],
    ['23514', 400],
    ['PGRST102', 400],
    ['42501', 403],
    ['', 401],
    ['', 500],
  ])('nothing after %s (status %i), which will not pass', async (code, status) => {
    answers = [sqlError(status, code)];
    await expect(store.enqueue([newEvent()])).rejects.toThrow('it failed');
    expect(asked).toHaveLength(1);
  });

  it('what the first try may have done is taken for done: nobody is told it was a duplicate, or lost', async () => {
    const event = newEvent();
    answers = [hangUp, json(200, [])];
    expect(await store.enqueue([event])).toEqual([event.id]);
    answers = [hangUp, json(200, [])];
    expect(await store.settle([completed])).toEqual([completed.id]);
    answers = [sqlError(500, '57014'), json(200, [])];
    expect(await store.settle([completed])).toEqual([]);
  });

  it('an exchange whose answer was lost settles again, and does not claim again', async () => {
    const failure: Settlement = { id: newEvent().id, leaseToken: TOKEN, ...retry() };
    answers = [hangUp, idsOf()];
    const exchanged = await store.settleAndClaim([failure], CLAIM);
    expect(exchanged).toEqual({
      settled: new Set([completed.id]),
      claimed: [],
      lookedEverywhere: false,
    });
    expect(asked.map(({ path }) => path)).toEqual([
      '/rest/v1/rpc/outbox_settle_and_claim_as_json',
      '/rest/v1/rpc/outbox_settle',
    ]);
  });
});

describe('a gate whose answer was lost', () => {
  const lists = (...rows: object[]) => json(200, rows);
  const verbs = () => asked.map(({ path }) => path.replace('/rest/v1/rpc/outbox_sentinel_', ''));

  it.each(UNKNOWN)(
    'a claim, by %s, is not repeated but given back: it may have been done',
    async (_, answer) => {
      answers = [answer, json(200, false)];
      await expect(store.sentinels.claim(GATE_CLAIM)).rejects.toThrow(
        /^Supabase, outbox_sentinel_claim: /,
      );
      expect(verbs()).toEqual(['claim', 'release']);
      expect(asked[1]?.body).toEqual({ key: 'k', version: '1', lease_token: TOKEN });
    },
  );

  it('a claim that was rolled back is repeated, and one that was refused is not given back', async () => {
    answers = [sqlError(500, '55P03'), sqlError(403, '42501')];
    await expect(store.sentinels.claim(GATE_CLAIM)).rejects.toThrow('(status 403, 42501)');
    expect(verbs()).toEqual(['claim', 'claim']);
  });

  it('a claim that cannot be given back either tells why it failed, and not that', async () => {
    answers = [html(504), sqlError(403, '42501')];
    await expect(store.sentinels.claim(GATE_CLAIM)).rejects.toThrow('(status 504)');
  });

  it('a renewal is repeated, and the later answer counts', async () => {
    answers = [hangUp, json(200, true)];
    expect(await store.sentinels.renew(GATE, 60_000)).toBe(true);
    answers = [hangUp, json(200, false)];
    expect(await store.sentinels.renew(GATE, 60_000)).toBe(false);
  });

  it('a stamp counts as set if it is there, and as lost if it is not', async () => {
    const stamped = { ...SENTINEL_ROW, stamped_at: '2026-01-01T00:00:00+00:00' };
    const old = { ...stamped, version: '0' };
    answers = [hangUp, json(200, false), lists(old, stamped)];
    expect(await store.sentinels.stamp(GATE, true)).toBe(true);
    expect(verbs()).toEqual(['stamp', 'stamp', 'list']);
    answers = [hangUp, json(200, false), lists(old, SENTINEL_ROW)];
    expect(await store.sentinels.stamp(GATE, true)).toBe(false);
    answers = [hangUp, json(200, false), lists()];
    expect(await store.sentinels.stamp(GATE, true)).toBe(false);
    answers = [json(200, false)];
    expect(await store.sentinels.stamp(GATE, true)).toBe(false);
  });

  it('an end without a stamp and a release count as done', async () => {
    answers = [hangUp, json(200, false)];
    expect(await store.sentinels.stamp(GATE, false)).toBe(true);
    answers = [hangUp, json(200, false)];
    expect(await store.sentinels.release(GATE)).toBe(true);
    answers = [json(200, false)];
    expect(await store.sentinels.stamp(GATE, false)).toBe(false);
    expect(await store.sentinels.release(GATE)).toBe(false);
  });

  it('a failure counts as stored, and is answered as it is there', async () => {
    answers = [hangUp, json(200, { sentinel: null }), lists(SENTINEL_ROW)];
    expect(await store.sentinels.fail(GATE, GATE_FAILURE)).toMatchObject({
      failures: 2,
      lastError: 'x',
      failedAt: new Date('2026-01-01T00:00:00.123Z'),
    });
    answers = [json(200, { sentinel: null })];
    expect(await store.sentinels.fail(GATE, GATE_FAILURE)).toBeNull();
  });
});

it('a redirect is not followed: the key goes nowhere else', async () => {
  answers = [redirect];
  await expect(store.claim(CLAIM)).rejects.toThrow();
  expect(asked.map(({ method, path }) => `${method} ${path}`)).toEqual([
    'POST /rest/v1/rpc/outbox_claim_as_json',
  ]);
});

it('the row that a violated constraint names is not told to anybody', async () => {
  answers = [
    json(400, {
      code: '23514',
      message: 'new row for relation "outbox_events" violates check constraint "x"',
      details: 'Failing row contains (1, secret-of-a-customer).',
      hint: null,
    }),
  ];
  const error = await store.enqueue([newEvent()]).catch((caught: unknown) => caught);
  expect(inspect(error, { depth: 9, showHidden: true })).not.toContain('secret-of-a-customer');
  expect((error as Error).message).toBe(
    'Supabase, outbox_enqueue: new row for relation "outbox_events" violates check constraint "x" (status 400, 23514)',
  );
});

it.each([
  ['a wrong host, which answers everything with an empty list', json(200, [])],
  ['a project that has no such event', json(200, { events: [] })],
])('an event that was neither written nor is there is an error: %s', async (_, second) => {
  answers = [json(200, []), second];
  await expect(store.enqueue([newEvent()])).rejects.toThrow(
    /"events"|it is not: is supabase.url right/,
  );
});

describe('check', () => {
  it('says what to run when the outbox is not there', async () => {
    answers = [sqlError(404, 'PGRST202')];
    await expect(store.check()).rejects.toMatchObject({
      code: 'SCHEMA_MISMATCH',
      message: expect.stringMatching(/has no outbox yet .*npx nestjs-outbox-relay migrate/),
    });
  });

  it.each([
    [1, 0, /is at outbox version 1, this code needs/],
    [999, 999, /cannot use any more/],
  ])('and when it is of another version: %i', async (version, breaksBefore, message) => {
    answers = [json(200, { version, breaks_before: breaksBefore })];
    await expect(store.check()).rejects.toMatchObject({
      code: 'SCHEMA_MISMATCH',
      message: expect.stringMatching(message),
    });
  });
});
