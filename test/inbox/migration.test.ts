import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { migrateOutbox, outboxSql } from '../../src/index.js';
import { type Cluster, startCluster } from '../../tools/postgres-cluster.js';
import { createDatabase } from '../support/database.js';

const FUNCTIONS = [
  'outbox_inbox_record(uuid, text)',
  'outbox_inbox_prune(double precision, integer)',
];
const DO_ANYTHING = ['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE'];

describe('the migration of the inbox', () => {
  // A cluster of its own: roles belong to the whole of one.
  let cluster: Cluster;
  let pool: pg.Pool;
  const query = async (text: string, values?: unknown[]) =>
    (await pool.query<Record<string, unknown>>(text, values)).rows;

  beforeAll(async () => {
    cluster = await startCluster({ major: 18 });
    pool = new pg.Pool({ connectionString: cluster.connectionString() });
    // As in a Supabase project, an older one: everything is open by default.
    await query('CREATE ROLE anon; CREATE ROLE authenticated; CREATE ROLE service_role BYPASSRLS');
    await query(
      'ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON TABLES TO anon, authenticated',
    );
    await query(
      'ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON FUNCTIONS TO anon, authenticated',
    );
    await migrateOutbox({ database: pool });
  });
  afterAll(async () => {
    await pool.end();
    await cluster.remove();
  });

  it('adds to an outbox that is at version 3', async () => {
    await using older = await createDatabase();
    const [first] = (await outboxSql()).split('-- 004_');
    await older.query(first as string);
    const { from, applied } = await migrateOutbox({ database: older.pool });
    expect([from, applied[0]]).toEqual([3, '004_outbox_inbox.sql']);
  });

  it('runs as it lies, and twice without harm', async () => {
    const [, inbox] = (await outboxSql()).split(/^-- 00[4-9]_/m);
    const before = await query('SELECT version FROM outbox_migrations ORDER BY 1');
    await query(`-- 004_${inbox}`);
    await query(`-- 004_${inbox}`);
    expect(await query('SELECT version FROM outbox_migrations ORDER BY 1')).toEqual(before);
  });

  it.each(['anon', 'authenticated'])('leaves nothing open to %s', async (role) => {
    for (const privilege of DO_ANYTHING)
      expect(
        await query('SELECT has_table_privilege($1, $2, $3) AS may', [
          role,
          'outbox_inbox',
          privilege,
        ]),
      ).toEqual([{ may: false }]);
    for (const name of FUNCTIONS)
      expect(
        await query(`SELECT has_function_privilege($1, $2, 'EXECUTE') AS may`, [role, name]),
      ).toEqual([{ may: false }]);
  });

  it('keeps rows from whoever is let in without a policy', async () => {
    expect(
      await query(
        `SELECT relrowsecurity AS "on", (SELECT count(*)::int FROM pg_policies WHERE tablename = 'outbox_inbox') AS policies
         FROM pg_class WHERE oid = 'outbox_inbox'::regclass`,
      ),
    ).toEqual([{ on: true, policies: 0 }]);
  });

  it('lets service_role do what it needs', async () => {
    await actAs('service_role');
  });

  it('fixes the search path of its functions', async () => {
    const rows = await query(
      `SELECT proconfig FROM pg_proc WHERE proname LIKE 'outbox\\_inbox\\_%' ORDER BY 1`,
    );
    expect(rows).toEqual(FUNCTIONS.map(() => ({ proconfig: ['search_path=""'] })));
  });

  it('serves a role that does not own it, with the grants that its notes and those of 003 name', async () => {
    await query('CREATE ROLE app');
    const [upToInbox] = (await outboxSql()).split(/^-- 00[5-9]_/m);
    const notes = upToInbox!
      .split('\n')
      .filter((line) => /^-- {3}(GRANT|CREATE POLICY) /.test(line));
    expect(notes).toHaveLength(9);
    for (const note of notes) await query(note.slice(2));
    await actAs('app');
  });

  /** Records and prunes, in the name of that role. */
  async function actAs(role: string): Promise<void> {
    const client = await pool.connect();
    const value = async (text: string): Promise<unknown> =>
      Object.values((await client.query<Record<string, unknown>>(text)).rows[0]!)[0];
    try {
      await client.query(`BEGIN; SET LOCAL ROLE ${role}`);
      const record = `SELECT outbox_inbox_record('11111111-1111-4111-8111-111111111111', 'a')`;
      expect(await value(record)).toBe(true);
      expect(await value(record)).toBe(false);
      expect(await value('SELECT outbox_inbox_prune(0, 10)')).toBe(0);
      expect(await value('SELECT outbox_inbox_prune(-1000, 10)')).toBe(1);
    } finally {
      await client.query('ROLLBACK');
      client.release();
    }
  }
});
