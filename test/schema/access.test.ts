import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { type Cluster, startCluster } from '../../tools/postgres-cluster.js';
import { migrate } from '../../src/schema/migrate.js';
import { PostgresOutboxStore } from '../../src/store/postgres/postgres-outbox-store.js';
import { sqlNames } from '../../src/store/postgres/sql-names.js';
import { failed, newEvent, retry } from '../store/conformance/subject.js';

// Roles belong to a whole cluster, so this file has one of its own. Made as Supabase makes them.
const ROLES = `
  CREATE ROLE anon NOLOGIN NOINHERIT;
  CREATE ROLE authenticated NOLOGIN NOINHERIT;
  CREATE ROLE service_role NOLOGIN NOINHERIT BYPASSRLS;
  CREATE ROLE migrator LOGIN CREATEDB CREATEROLE BYPASSRLS;`;

/** What older projects give away of everything that is created in public. */
const OLD_DEFAULT_PRIVILEGES = `
  ALTER DEFAULT PRIVILEGES FOR ROLE migrator GRANT ALL ON TABLES TO anon, authenticated, service_role;
  ALTER DEFAULT PRIVILEGES FOR ROLE migrator GRANT ALL ON FUNCTIONS TO anon, authenticated, service_role;
  ALTER DEFAULT PRIVILEGES FOR ROLE migrator GRANT ALL ON SEQUENCES TO anon, authenticated, service_role;`;

const NO_DEFAULT_PRIVILEGES = `
  ALTER DEFAULT PRIVILEGES FOR ROLE migrator REVOKE ALL ON FUNCTIONS FROM PUBLIC;`;

const CLAIM = { limit: 10, leaseMs: 60_000 };

describe.each([14, 18] as const)('on PostgreSQL %i with the roles of Supabase', (major) => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster({ major });
    await asAdmin('postgres', ROLES);
  });
  afterAll(() => cluster.remove());

  async function asAdmin(database: string, sql: string): Promise<void> {
    const client = new pg.Client({ connectionString: cluster.connectionString(database) });
    await client.connect();
    try {
      await client.query(sql);
    } finally {
      await client.end();
    }
  }

  describe.each([
    ['the default privileges of older projects', 'public', OLD_DEFAULT_PRIVILEGES],
    ['no default privileges', 'public', NO_DEFAULT_PRIVILEGES],
    ['the defaults of PostgreSQL', 'public', ''],
    ['a schema of its own, and the defaults of PostgreSQL', 'tenant-1', ''],
    [
      'a schema of its own, and the privileges of older projects',
      'tenant-1',
      OLD_DEFAULT_PRIVILEGES,
    ],
  ])('and %s', (_, schema, privileges) => {
    const names = sqlNames(schema);
    const pools: pg.Pool[] = [];

    function poolOf(role: string): pg.Pool {
      const pool = new pg.Pool({
        connectionString: cluster.connectionString('app'),
        options: `-c role=${role}`,
      });
      pool.on('error', () => {}); // the database is dropped under it
      pools.push(pool);
      return pool;
    }

    beforeAll(async () => {
      await asAdmin('postgres', 'CREATE DATABASE app OWNER migrator');
      await asAdmin(
        'app',
        `GRANT USAGE ON SCHEMA public TO anon, authenticated, service_role;
         GRANT CREATE ON SCHEMA public TO migrator; ${privileges}`,
      );
      const migrator = poolOf('migrator');
      await migrate(migrator, names);
      // Even where the schema is open to them.
      await migrator.query(`GRANT USAGE ON SCHEMA "${schema}" TO anon, authenticated`);
      await new PostgresOutboxStore(migrator, names).enqueue([newEvent()]);
    });
    afterAll(async () => {
      await Promise.all(pools.map((pool) => pool.end()));
      await asAdmin('postgres', 'DROP DATABASE app WITH (FORCE)');
    });

    async function ours(kind: 'tables' | 'functions'): Promise<string[]> {
      const { rows } = await poolOf('postgres').query<{ name: string }>(
        kind === 'tables'
          ? `SELECT oid::regclass::text AS name FROM pg_class
             WHERE relnamespace = $1::regnamespace AND relkind IN ('r', 'v', 'S', 'm', 'p')`
          : `SELECT oid::regprocedure::text AS name FROM pg_proc WHERE pronamespace = $1::regnamespace`,
        [`"${schema}"`],
      );
      return rows.map(({ name }) => name);
    }

    it.each(['anon', 'authenticated'])('%s reads, changes and calls nothing', async (role) => {
      const pool = poolOf(role);
      const denied = async (what: 'table' | 'function', sql: string): Promise<void> => {
        expect([sql, await outcomeOf(pool, sql)]).toEqual([
          sql,
          expect.stringMatching(`^permission denied for ${what} `),
        ]);
      };
      const tables = await ours('tables');
      expect(tables.length).toBeGreaterThanOrEqual(3);
      for (const table of tables) {
        await denied('table', `SELECT 1 FROM ${table}`);
        await denied('table', `SELECT count(*) FROM ${table}`);
        await denied('table', `INSERT INTO ${table} DEFAULT VALUES`);
        await denied('table', `DELETE FROM ${table}`);
        await denied('table', `TRUNCATE ${table}`);
      }
      await denied('table', `UPDATE ${names.events} SET status = 'COMPLETED'`);
      await denied('table', `INSERT INTO ${names.events} (event_type, payload) VALUES ('a', '{}')`);
      await denied(
        'table',
        `CREATE TRIGGER t AFTER INSERT ON ${names.events} EXECUTE FUNCTION now()`,
      );

      const functions = await ours('functions');
      expect(functions.length).toBeGreaterThanOrEqual(10);
      // It can only be attached, which the tests of triggers show.
      const triggers = functions.filter((signature) => signature.includes('_enqueue_row('));
      expect(triggers).toHaveLength(1);
      for (const signature of functions.filter((each) => !triggers.includes(each))) {
        const args = /\((.*)\)/.exec(signature)?.[1] ?? '';
        const nulls = args === '' ? [] : args.split(',').map((type) => `NULL::${type}`);
        await denied('function', `SELECT ${signature.replace(/\(.*/, '')}(${nulls.join(', ')})`);
      }
      expect(functions.length).toBe(new Set(functions).size);
    });

    it('service_role does everything the store does', async () => {
      const store = new PostgresOutboxStore(poolOf('service_role'), names);
      await store.check();
      const event = newEvent();
      expect(await store.enqueue([event])).toEqual([event.id]);
      const claimed = await store.claim(CLAIM);
      expect(claimed).toHaveLength(2);
      const leases = claimed.map(({ id, leaseToken }) => ({ id, leaseToken }));
      expect(await store.renew(leases, 60_000)).toHaveLength(2);
      expect(await store.settle([{ ...leases[0]!, ...retry({ delayMs: 0 }) }])).toHaveLength(1);
      const [again] = await store.claimOthers({ ...CLAIM, otherThan: [] });
      const { settled } = await store.settleAndClaim(
        [
          { ...leases[1]!, outcome: 'completed' },
          { id: again!.id, leaseToken: again!.leaseToken, ...failed() },
        ],
        CLAIM,
      );
      expect(settled.size).toBe(2);
      expect(await store.reap(CLAIM)).toEqual([]);
      expect((await store.deadLetters({ limit: 9 })).items).toHaveLength(1);
      expect(await store.countDeadLetters({})).toBe(1);
      expect(await store.redrive({ limit: 9, firstDelayMs: 0, spacingMs: 0 })).toHaveLength(1);
      expect(await store.discard({ limit: 9 })).toEqual([]);
      expect(await store.find(event.id)).toMatchObject({ id: event.id });
      expect(await store.stats()).toMatchObject({ due: 1 });
      expect(await store.prune({ status: 'COMPLETED', olderThanMs: -1, limit: 9 })).toBe(1);
    });

    it('service_role cannot change the schema, and the versions it only reads', async () => {
      const pool = poolOf('service_role');
      const migrations = names.qualified('migrations');
      expect(await outcomeOf(pool, `SELECT version FROM ${migrations}`)).toBe('done');
      expect(await outcomeOf(pool, `ALTER TABLE ${names.events} ADD x int`)).toMatch(
        /must be owner/,
      );
      if (privileges === OLD_DEFAULT_PRIVILEGES) return; // there it was given everything
      expect(await outcomeOf(pool, `DELETE FROM ${migrations}`)).toMatch(/permission denied/);
    });

    it('every table has row level security, every function a fixed search_path and, but for the trigger function, the caller’s rights', async () => {
      const admin = poolOf('postgres');
      const tables = await admin.query(
        `SELECT relname FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind IN ('r', 'p')
           AND NOT relrowsecurity`,
        [`"${schema}"`],
      );
      expect(tables.rows).toEqual([]);
      const functions = await admin.query(
        `SELECT proname FROM pg_proc WHERE pronamespace = $1::regnamespace
           AND (prosecdef AND prorettype <> 'trigger'::regtype OR proconfig IS NULL OR NOT proconfig @> ARRAY['search_path=""'])`,
        [`"${schema}"`],
      );
      expect(functions.rows).toEqual([]);
    });
  });
});

/** `done`, or what the server says against it. */
async function outcomeOf(pool: pg.Pool, sql: string): Promise<string> {
  try {
    await pool.query(sql);
    return 'done';
  } catch (error) {
    return (error as Error).message;
  }
}
