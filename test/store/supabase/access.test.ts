import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createClient, type SupabaseClient } from '@supabase/supabase-js';
import { migrate } from '../../../src/schema/migrate.js';
import { sqlNames, type SqlNames } from '../../../src/store/postgres/sql-names.js';
import { SupabaseOutboxStore } from '../../../src/store/supabase/supabase-outbox-store.js';
import { SupabaseRpc } from '../../../src/store/supabase/supabase-rpc.js';
import { describeOnSupabase, type Project } from '../../support/supabase/projects.js';

const STRANGERS = ['anon', 'authenticated'] as const;

describeOnSupabase('who may do what at Supabase', (kind) => {
  let project: Project;
  let names: SqlNames;
  beforeAll(async () => {
    project = await kind.open();
    names = sqlNames('public', kind.table);
    await migrate(project.pool, names);
    await project.query(businessTable(names));
    const rpc = new SupabaseRpc(async () => clientOf('secret'), names);
    await new SupabaseOutboxStore(rpc, names).check();
  });
  beforeEach(async () => {
    await project.query(`TRUNCATE ${names.events}, selftest_quotes`);
  });
  afterAll(async () => {
    await project.query(`DROP TABLE selftest_quotes; DROP FUNCTION selftest_create_quote(text)`);
    await project[Symbol.asyncDispose]();
  });

  function clientOf(key: keyof Project['keys']): SupabaseClient {
    const value = project.keys[key];
    if (value === undefined) throw new Error(`this project has no key "${key}"`);
    return createClient(project.url, value, {
      auth: { persistSession: false, autoRefreshToken: false, detectSessionInUrl: false },
    });
  }

  /** In a transaction that ends with it. */
  async function as(role: string, sql: string): Promise<string> {
    const client = await project.pool.connect();
    try {
      await client.query(`BEGIN; SET LOCAL ROLE ${role}`);
      await client.query(sql);
      await client.query('COMMIT');
      return 'done';
    } catch (error) {
      await client.query('ROLLBACK');
      return (error as Error).message;
    } finally {
      client.release();
    }
  }

  async function eventTypes(): Promise<string[]> {
    const rows = await project.query<{ event_type: string }>(
      `SELECT event_type FROM ${names.events} ORDER BY event_type`,
    );
    return rows.map((row) => row.event_type);
  }

  async function functions(): Promise<{ name: string; args: string[] }[]> {
    return project.query(
      `SELECT proname AS name, coalesce(proargnames[1:pronargs], '{}') AS args FROM pg_proc
       WHERE pronamespace = 'public'::regnamespace AND starts_with(proname, $1 || '_')
         AND prorettype <> 'trigger'::regtype`,
      [names.prefix],
    );
  }

  const keys = kind.hosted
    ? (['anon'] as const)
    : (['anon', 'publishable', 'authenticated'] as const);
  describe.each(keys)('over HTTP, the key %s', (key) => {
    it.each([
      ['events', 'id'],
      ['migrations', 'version'],
      ['inbox', 'event_id'],
      ['sentinels', 'key'],
    ])('reads and changes nothing of outbox_%s', async (name, column) => {
      const table = `${names.prefix}_${name}`;
      const client = clientOf(key);
      for (const answer of [
        await client.from(table).select(),
        await client.from(table).select('*', { count: 'exact', head: true }),
        await client.from(table).insert({}),
        await client
          .from(table)
          .update({ [column]: null })
          .not(column, 'is', null),
        await client.from(table).delete().not(column, 'is', null),
      ]) {
        // A HEAD has no body to say it in, but the status says the same.
        expect([401, 403]).toContain(answer.status);
        expect(answer.data).toBeNull();
        expect(answer.error).toBeTruthy();
      }
    });

    it('calls no function of ours', async () => {
      const ours = await functions();
      expect(ours.length).toBeGreaterThanOrEqual(30);
      expect(ours.map(({ name }) => name)).toContain(`${names.prefix}_sentinel_claim`);
      for (const { name, args } of ours) {
        const nothing = Object.fromEntries(args.map((arg) => [arg, null]));
        const { error, data } = await clientOf(key).rpc(name, nothing);
        expect([name, error?.code, data]).toEqual([name, '42501', null]);
        expect(error?.message).toBe(`permission denied for function ${name}`);
      }
    });

    it('does not find the trigger function at all, nor a schema of pg-boss', async () => {
      const trigger = await clientOf(key).rpc(`${names.prefix}_enqueue_row`);
      expect(trigger.error).toBeTruthy();
      const boss = await clientOf(key).schema('pgboss').from('job').select();
      expect(boss.error?.code).toBe('PGRST106');
    });
  });

  it('over HTTP, the secret key calls functions, and does not find the schema of pg-boss either', async () => {
    const { data } = await clientOf('secret').rpc(`${names.prefix}_enqueue`, {
      event_type: 'a',
      payload: { n: 1 },
    });
    expect(data).toEqual(expect.any(String));
    expect(await eventTypes()).toEqual(['a']);
    const boss = await clientOf('secret').schema('pgboss').from('job').select();
    expect(boss.error?.code).toBe('PGRST106');
  });

  it('a wrong argument of outbox_enqueue comes back over rpc with what to do', async () => {
    const { error } = await clientOf('secret').rpc(`${names.prefix}_enqueue`, {
      event_type: 'a',
      payload: [1],
    });
    expect(error).toMatchObject({
      code: '22023',
      message: 'payload must be a JSON object, got array',
      hint: expect.stringContaining('Wrap it'),
    });
  });

  describe.each(STRANGERS)('over SQL, %s', (role) => {
    it('cannot enqueue, neither by function nor into the table', async () => {
      expect(await as(role, `SELECT ${names.qualified('enqueue')}('a', '{}')`)).toMatch(
        /^permission denied for function/,
      );
      expect(
        await as(role, `INSERT INTO ${names.events} (event_type, payload) VALUES ('a', '{}')`),
      ).toMatch(/^permission denied for table/);
      expect(await eventTypes()).toEqual([]);
    });

    it('cannot attach the trigger function to a table of its own, nor call it', async () => {
      const own = `CREATE TEMP TABLE own (id int) ON COMMIT DROP;
        CREATE TRIGGER t AFTER INSERT ON own FOR EACH ROW
        EXECUTE FUNCTION ${names.qualified('enqueue_row')}('forged', 'id');
        INSERT INTO own VALUES (1)`;
      expect(await as(role, own)).toMatch(/^permission denied for function/);
      expect(await as(role, `SELECT ${names.qualified('enqueue_row')}()`)).toMatch(
        /^(permission denied for function|trigger functions can only be called as triggers)/,
      );
      expect(await eventTypes()).toEqual([]);
    });

    it('cannot attach it to the table of the application, nor change the trigger there', async () => {
      expect(
        await as(
          role,
          `CREATE TRIGGER t AFTER INSERT ON selftest_quotes FOR EACH ROW
           EXECUTE FUNCTION ${names.qualified('enqueue_row')}('forged', 'id')`,
        ),
      ).toMatch(/^permission denied for/);
      expect(await as(role, 'DROP TRIGGER tell ON selftest_quotes')).toMatch(/^must be owner of/);
    });
  });

  it('a signed-in user’s insert into the application’s table enqueues by its trigger', async () => {
    expect(await as('authenticated', `INSERT INTO selftest_quotes (name) VALUES ('Office')`)).toBe(
      'done',
    );
    expect(await project.query(`SELECT event_type, payload FROM ${names.events}`)).toEqual([
      { event_type: 'quote.inserted', payload: { quoteId: expect.any(String), name: 'Office' } },
    ]);
    expect(await as('anon', `INSERT INTO selftest_quotes (name) VALUES ('x')`)).toMatch(
      /^permission denied for table/,
    );
  });

  it('a signed-in user calls the application’s own function, which decides what is enqueued', async () => {
    expect(await as('anon', `SELECT selftest_create_quote('Office')`)).toMatch(
      /^permission denied for function/,
    );
    expect(await as('authenticated', `SELECT selftest_create_quote('Office')`)).toBe('done');
    expect(await eventTypes()).toEqual(['quote.created', 'quote.inserted']);
  });

  it('service_role calls it over rpc, and what fails in it leaves neither row nor event', async () => {
    const ok = await clientOf('secret').rpc('selftest_create_quote', { name: 'Office' });
    expect(ok).toMatchObject({ error: null, data: expect.any(String) });
    const failed = await clientOf('secret').rpc('selftest_create_quote', { name: 'fail' });
    expect(failed.error?.message).toBe('it failed after the enqueue');
    expect(await eventTypes()).toEqual(['quote.created', 'quote.inserted']);
    expect(await project.query('SELECT name FROM selftest_quotes')).toEqual([{ name: 'Office' }]);
  });
});

/** An application's table with a trigger, and its function, as docs/supabase.md has them. */
function businessTable(names: SqlNames): string {
  return `
    DROP TABLE IF EXISTS selftest_quotes;
    CREATE TABLE selftest_quotes (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), name text NOT NULL);
    REVOKE ALL ON selftest_quotes FROM anon, authenticated;
    GRANT SELECT, INSERT ON selftest_quotes TO authenticated, service_role;
    CREATE TRIGGER tell AFTER INSERT ON selftest_quotes FOR EACH ROW
      EXECUTE FUNCTION ${names.qualified('enqueue_row')}('quote.inserted', 'quoteId:id', 'name');

    CREATE OR REPLACE FUNCTION selftest_create_quote(name text) RETURNS uuid
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
    DECLARE
      quote_id uuid;
    BEGIN
      INSERT INTO public.selftest_quotes (name) VALUES (selftest_create_quote.name) RETURNING id INTO quote_id;
      PERFORM ${names.qualified('enqueue')}('quote.created', jsonb_build_object('quoteId', quote_id));
      IF name = 'fail' THEN RAISE 'it failed after the enqueue'; END IF;
      RETURN quote_id;
    END $$;
    REVOKE ALL ON FUNCTION selftest_create_quote(text) FROM public, anon, authenticated;
    GRANT EXECUTE ON FUNCTION selftest_create_quote(text) TO authenticated, service_role;
    NOTIFY pgrst, 'reload schema';`;
}
