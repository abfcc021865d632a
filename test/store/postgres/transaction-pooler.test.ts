import { describe, expect, it } from '@jest/globals';
import { openStore } from '../../../src/open-store.js';
import { resolveOptions, type OutboxModuleOptions } from '../../../src/outbox-options.js';
import { isTransactionPooler } from '../../../src/store/postgres/transaction-pooler.js';

const POOLER = 'postgres://postgres.abc:secret@aws-0-eu-west-1.pooler.supabase.com';
const SUPABASE = { url: 'https://abc.supabase.co', serviceRoleKey: 'sb_secret_x' };

describe('a pooler in transaction mode', () => {
  it.each([
    [{ connectionString: `${POOLER}:6543/postgres` }, true],
    [{ connectionString: 'postgres://postgres@db.abc.supabase.co:6543/postgres' }, true],
    [{ connectionString: 'postgres://u@h/db?port=6543' }, true],
    [{ host: 'h', port: 6543 }, true],
    [{ connectionString: `${POOLER}:5432/postgres` }, false],
    [{ connectionString: `${POOLER}/postgres` }, false],
    [{ connectionString: 'socket:/tmp?db=x' }, false],
    [{ connectionString: '/tmp' }, false],
    [{ host: 'h', port: 5432 }, false],
    [{}, false],
  ])('is known by its port: %j', (config, expected) => {
    expect(isTransactionPooler(config)).toBe(expected);
  });

  it.each<[string, OutboxModuleOptions, number]>([
    ['connectionString', { connectionString: `${POOLER}:6543/postgres` }, 1],
    [
      'relay.connectionString',
      { supabase: SUPABASE, relay: { connectionString: `${POOLER}:6543/postgres` } },
      1,
    ],
    ['connectionString of session mode', { connectionString: `${POOLER}:5432/postgres` }, 0],
    ['supabase alone', { supabase: SUPABASE }, 0],
  ])('as %s is said once, without the password', async (_, options, times) => {
    const said: string[] = [];
    const quiet = (): void => {};
    const log = {
      debug: quiet,
      log: quiet,
      warn: (line: string) => void said.push(line),
      error: quiet,
    };
    const { store, wakeChannel } = openStore(resolveOptions(options), log);
    expect(wakeChannel).toBeDefined();
    await store.close();
    expect(said).toHaveLength(times);
    for (const line of said) {
      expect(line).toMatch(/transaction-mode pooler .*LISTEN does not work.*within 15 s/);
      expect(line).not.toContain('secret');
    }
  });
});
