import { describe, expect, it } from '@jest/globals';
import { createClient } from '@supabase/supabase-js';
import type { OutboxModuleOptions } from '../src/index.js';
import { DEFAULTS, resolveOptions } from '../src/outbox-options.js';
import { InMemoryOutboxStore } from '../src/testing.js';
import { SILENT_BOSS } from './support/outbox-app.js';

const URL = 'postgres://app:secret@localhost:5432/app';
const store = new InMemoryOutboxStore();
const resolve = (options: unknown) => resolveOptions(options as OutboxModuleOptions);

const PROJECT = 'https://project.supabase.co';
const SUPABASE = { url: PROJECT, serviceRoleKey: 'sb_secret_x' };

/** In the older form: the role is in it, and the signature nobody here can check. */
function keyOf(role: string): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'HS256' })}.${part({ role })}.signature`;
}

describe('options that cannot be meant are refused, with the name, the value and the fix', () => {
  it.each<[unknown, string]>([
    [undefined, 'options must be an object, got undefined'],
    [null, 'options must be an object, got null'],
    ['postgres://…', 'options must be an object, got "postgres://…"'],
    [[], 'options must be an object, got '],

    [
      {},
      'exactly one of connectionString, pool, supabase and store says where events rest, got none (is DATABASE_URL set?)',
    ],
    [{ connectionString: undefined }, 'got none (is DATABASE_URL set?)'],
    [{ connectionString: URL, store }, 'got connectionString and store'],
    [
      { connectionString: '' },
      'connectionString must be a PostgreSQL URL such as postgres://user:password@host:5432/database, got an empty string',
    ],
    [{ connectionString: 5 }, 'connectionString must be a PostgreSQL URL'],
    [{ pool: {} }, 'pool must be a pg Pool (with query and connect)'],
    [{ pool: URL }, 'pool must be a pg Pool'],
    [
      { supabase: null },
      'supabase must be { url, serviceRoleKey } or a supabase-js client, got null',
    ],
    [{ supabase: 'https://x.supabase.co' }, 'supabase must be { url, serviceRoleKey } or a'],
    [{ supabase: { url: PROJECT, key: 'x' } }, 'unknown option supabase.key: known are url'],
    [{ supabase: { serviceRoleKey: 'x' } }, 'got undefined (is SUPABASE_URL set?)'],
    [
      { supabase: { url: 'x.supabase.co', serviceRoleKey: 'x' } },
      'supabase.url must be the URL of',
    ],
    [
      { supabase: { url: URL, serviceRoleKey: 'x' } },
      'supabase.url must be the URL of the project',
    ],
    [{ supabase: { url: `${PROJECT}/rest/v1/`, serviceRoleKey: 'x' } }, 'must not end in /rest/v1'],
    [{ supabase: { url: PROJECT } }, 'got undefined (is SUPABASE_SERVICE_ROLE_KEY set?)'],
    [{ supabase: { url: PROJECT, serviceRoleKey: '' } }, 'secret key, got an empty string'],
    [
      { supabase: { url: PROJECT, serviceRoleKey: 'sb_publishable_x' } },
      'supabase.serviceRoleKey is the publishable key, which everybody may know',
    ],
    [
      { supabase: { url: PROJECT, serviceRoleKey: keyOf('anon') } },
      'supabase.serviceRoleKey is the anon key, which everybody may know',
    ],
    [
      { supabase: createClient(PROJECT, keyOf('anon')) },
      'supabase was made with the anon key, which everybody may know',
    ],
    [
      { supabase: createClient(PROJECT, 'sb_publishable_x') },
      'supabase was made with the publishable key',
    ],
    [
      { supabase: SUPABASE, migrate: true },
      'migrate: true with supabase needs a PostgreSQL connection',
    ],
    [{ supabase: SUPABASE, migrate: true, relay: false }, 'give relay.connectionString, or run'],
    [{ supabase: SUPABASE, pool: {} }, 'got pool and supabase'],
    [{ store: {} }, 'store must be an OutboxStore'],
    [{ store: InMemoryOutboxStore }, 'store must be an OutboxStore'],

    [{ store, scema: 'x' }, 'unknown option scema: did you mean schema?'],
    [
      { store, conectionString: URL },
      'unknown option conectionString: did you mean connectionString?',
    ],
    [
      { store, onStoreFailiure: 'throw' },
      'unknown option onStoreFailiure: did you mean onStoreFailure?',
    ],
    [
      { store, batchSize: 5 },
      'unknown option batchSize: known are connectionString, pool, supabase, store, ',
    ],
    [
      { store, retry: { maxRetires: 3 } },
      'unknown option retry.maxRetires: did you mean maxRetries?',
    ],
    [{ store, retry: { maxAttempts: 3 } }, 'unknown option retry.maxAttempts'],
    [
      { store, relay: { concurency: 3 } },
      'unknown option relay.concurency: did you mean concurrency?',
    ],
    [
      { store, relay: { listenerTimeout: 3 } },
      'unknown option relay.listenerTimeout: did you mean listenerTimeoutMs?',
    ],
    [
      { store, retention: { completed: 3 } },
      'unknown option retention.completed: did you mean completedMs?',
    ],

    [{ store, migrate: 'yes' }, 'migrate must be true or false, got "yes"'],
    [{ store, onStoreFailure: 'ignore' }, `onStoreFailure must be 'emit' or 'throw', got "ignore"`],
    [
      { store, maxPayloadBytes: 0 },
      'maxPayloadBytes must be a whole number from 1 to 268435456, got 0',
    ],

    [{ store, retry: 5 }, 'retry must be an object, got 5'],
    [{ store, retry: null }, 'retry must be an object, got null'],
    [
      { store, retry: { maxRetries: 0 } },
      'retry.maxRetries must be a whole number from 1 to 100, got 0',
    ],
    [
      { store, retry: { maxRetries: 2.5 } },
      'retry.maxRetries must be a whole number from 1 to 100, got 2.5',
    ],
    [
      { store, retry: { maxRetries: '5' } },
      'retry.maxRetries must be a whole number from 1 to 100, got "5"',
    ],
    [
      { store, retry: { maxRetries: Number.NaN } },
      'retry.maxRetries must be a whole number from 1 to 100, got NaN',
    ],
    [
      { store, retry: { backoff: 5 } },
      'retry.backoff must be a function from a retry count to milliseconds, got 5',
    ],
    [{ store, retry: { maxBackoffMs: -1 } }, 'retry.maxBackoffMs must be a whole number from 0'],
    [{ store, retry: { jitter: 1.1 } }, 'retry.jitter must be a number from 0 to 1, got 1.1'],

    [{ store, relay: true }, 'relay must be false or an object, got true'],
    [{ store, relay: null }, 'relay must be false or an object, got null'],
    [
      { store, relay: { batchSize: 0 } },
      'relay.batchSize must be a whole number from 1 to 1000, got 0',
    ],
    [
      { store, relay: { concurrency: 1_001 } },
      'relay.concurrency must be a whole number from 1 to 1000, got 1001',
    ],
    [
      { store, relay: { leaseMs: 999 } },
      'relay.leaseMs must be a whole number from 1000 to 86400000, got 999',
    ],
    [
      { store, relay: { listenerTimeoutMs: 0 } },
      'relay.listenerTimeoutMs must be a whole number from 1 to 86400000, got 0',
    ],
    [
      { store, relay: { shutdownTimeoutMs: -1 } },
      'relay.shutdownTimeoutMs must be a whole number from 0',
    ],
    [
      { store, relay: { unheardGraceMs: Infinity } },
      'relay.unheardGraceMs must be a whole number from 0',
    ],
    [{ store, relay: { boss: {} } }, 'relay.boss must be a started PgBoss instance'],
    [{ store, relay: { connectionString: '' } }, 'relay.connectionString must be a PostgreSQL URL'],
    [
      { store, relay: { connectionString: URL, boss: SILENT_BOSS } },
      'relay.boss and relay.connectionString exclude each other',
    ],

    [{ store, retention: false }, 'retention must be an object, got false'],
    [
      { store, retention: { completedMs: -1 } },
      'retention.completedMs must be a whole number from 0',
    ],
    [
      { store, retention: { completedMs: true } },
      'retention.completedMs must be a whole number from 0',
    ],
    [
      { store, retention: { completedMs: 1_000, failedMs: 999 } },
      'retention.failedMs (999) must not be shorter than retention.completedMs (1000)',
    ],
    [
      { store, retention: { completedMs: false } },
      'must not be shorter than retention.completedMs (false)',
    ],
  ])('%p', (options, message) => {
    expect(() => resolve(options)).toThrow(message);
    expect(() => resolve(options)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });

  it('and a password is not shown', () => {
    for (const connectionString of [` `, 5, { url: URL }]) {
      expect(() => resolve({ connectionString })).toThrow(
        expect.not.objectContaining({ message: expect.stringContaining('secret') }),
      );
    }
  });
});

describe('what is left out', () => {
  it('is as documented', () => {
    expect(resolve({ store })).toEqual({
      connectionString: undefined,
      currentTransaction: undefined,
      pool: undefined,
      store,
      schema: 'public',
      table: 'outbox_events',
      migrate: false,
      relaying: true,
      boss: undefined,
      bossConnectionString: undefined,
      onStoreFailure: 'emit',
      maxPayloadBytes: 1_048_576,
      relay: {
        retry: {
          maxRetries: 5,
          backoff: expect.any(Function),
          maxBackoffMs: 86_400_000,
          jitter: 0,
        },
        batchSize: 100,
        concurrency: 10,
        leaseMs: 60_000,
        listenerTimeoutMs: 30_000,
        shutdownTimeoutMs: 10_000,
        unheardGraceMs: 86_400_000,
      },
      retention: { completedMs: 604_800_000, failedMs: 7_776_000_000, inboxMs: 30 * 86_400_000 },
    });
  });

  it('or undefined is as if it were not there', () => {
    const undefinedEverywhere = {
      connectionString: undefined,
      pool: undefined,
      schema: undefined,
      table: undefined,
      migrate: undefined,
      retry: {
        maxRetries: undefined,
        backoff: undefined,
        maxBackoffMs: undefined,
        jitter: undefined,
      },
      relay: {
        batchSize: undefined,
        concurrency: undefined,
        leaseMs: undefined,
        boss: undefined,
        connectionString: undefined,
      },
      retention: { completedMs: undefined, failedMs: undefined },
      onStoreFailure: undefined,
      maxPayloadBytes: undefined,
    };
    expect(resolve({ store, ...undefinedEverywhere })).toEqual(resolve({ store }));
    expect(resolve({ store, retry: undefined, relay: undefined, retention: undefined })).toEqual(
      resolve({ store }),
    );
  });

  it('cannot be changed by anybody', () => {
    expect(Object.isFrozen(DEFAULTS)).toBe(true);
    expect(Object.isFrozen(DEFAULTS.relay)).toBe(true);
    expect(Object.isFrozen(resolve({ store }))).toBe(true);
    expect(Object.isFrozen(resolve({ store }).relay)).toBe(true);
  });
});

describe('what is given', () => {
  it.each<object>([
    SUPABASE,
    { url: 'http://127.0.0.1:54321', serviceRoleKey: keyOf('service_role') },
    { schema: () => ({ rpc: () => ({}) }), rpc: () => ({}) },
  ])('as supabase may be a project or a client', (supabase) => {
    expect(resolve({ supabase })).toMatchObject({ supabase, store: undefined });
  });

  it('for a migration with supabase is the relay’s connection', () => {
    const relay = { connectionString: URL };
    expect(resolve({ supabase: SUPABASE, migrate: true, relay })).toMatchObject({ migrate: true });
  });

  it('is taken as it is', () => {
    const backoff = () => 5;
    expect(
      resolve({
        connectionString: URL,
        schema: 'billing',
        table: 'billing_outbox_events',
        migrate: true,
        retry: { maxRetries: 1, backoff, maxBackoffMs: 7, jitter: 0.2 },
        relay: {
          batchSize: 1,
          concurrency: 2,
          leaseMs: 3_000,
          listenerTimeoutMs: 4,
          shutdownTimeoutMs: 0,
          unheardGraceMs: 6,
          boss: SILENT_BOSS,
        },
        retention: { completedMs: 0, failedMs: false },
        onStoreFailure: 'throw',
        maxPayloadBytes: 8,
      }),
    ).toMatchObject({
      connectionString: URL,
      schema: 'billing',
      table: 'billing_outbox_events',
      migrate: true,
      boss: SILENT_BOSS,
      relay: {
        retry: { maxRetries: 1, backoff, maxBackoffMs: 7, jitter: 0.2 },
        batchSize: 1,
        concurrency: 2,
        leaseMs: 3_000,
        listenerTimeoutMs: 4,
        shutdownTimeoutMs: 0,
        unheardGraceMs: 6,
      },
      retention: { completedMs: 0, failedMs: false },
      onStoreFailure: 'throw',
      maxPayloadBytes: 8,
    });
  });

  it('relay: false does not relay', () => {
    expect(resolve({ store, relay: false }).relaying).toBe(false);
  });
});
