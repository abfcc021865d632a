import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { describeOnSupabase, type Project } from '../support/supabase/projects.js';
import { migrateOutbox } from '../../src/schema/migrate-outbox.js';
import { OutboxDoctor, type Examination } from '../../src/index.js';
import { startApp } from '../support/outbox-app.js';

describeOnSupabase('the doctor in a Supabase project', (kind) => {
  let project: Project;
  beforeAll(async () => {
    project = await kind.open();
    await migrateOutbox({ database: project.databaseUrl, table: kind.table });
  });
  afterAll(async () => {
    await project[Symbol.asyncDispose]();
  });

  async function examine(withConnection: boolean): Promise<Examination> {
    const app = await startApp({
      outbox: {
        supabase: { url: project.url, serviceRoleKey: project.keys.secret },
        table: kind.table,
        ...(withConnection && {
          relay: { boss: undefined, connectionString: project.databaseUrl },
        }),
      } as never,
    });
    try {
      return await app.module.get(OutboxDoctor).examine();
    } finally {
      await app.close();
    }
  }

  /** The tests' cluster forgets what it has written when the machine crashes; a project does not. */
  const withoutDurability = ({ findings }: Examination) =>
    findings.filter(({ check }) => check !== 'durability');

  it('finds nothing over relay.connectionString, and looks everywhere', async () => {
    const examination = await examine(true);
    expect(withoutDurability(examination)).toEqual([]);
    // pg-boss may still be building its schema.
    const blind = examination.checks.filter(({ ran, check }) => !ran && check !== 'ticks');
    expect(blind).toEqual([]);
  });

  it('says which checks it could not do over the Data API alone, and does the others', async () => {
    const { findings, checks } = await examine(false);
    expect(findings).toEqual([]);
    const looked = checks.filter(({ ran }) => ran).map(({ check }) => check);
    expect(looked).toEqual(
      expect.arrayContaining(['schema-version', 'overdue', 'unheard', 'gates']),
    );
    const blind = checks.filter(({ ran }) => !ran);
    expect(blind.length).toBeGreaterThan(15);
    for (const { remark } of blind) expect(remark).toMatch(/needs a PostgreSQL connection/);
  });

  it('finds what anon could do with a single column', async () => {
    await project.query(`GRANT UPDATE (status) ON public.${kind.table} TO anon`);
    const findings = withoutDurability(await examine(true));
    expect(findings).toMatchObject([
      { check: 'table-grants', what: expect.stringMatching(/^anon may UPDATE in/) },
    ]);
    for (const { fix } of findings) await project.query(fix);
    expect(withoutDurability(await examine(true))).toEqual([]);
  });

  it('finds what anon could do, and the fixes take it away', async () => {
    const table = `public.${kind.table}`;
    const prefix = kind.table.replace(/_events$/, '');
    await project.query(`GRANT SELECT, INSERT ON ${table} TO anon`);
    await project.query(`GRANT EXECUTE ON FUNCTION public.${prefix}_stats() TO authenticated`);
    let findings = withoutDurability(await examine(true));
    expect(findings).toMatchObject([
      {
        check: 'function-grants',
        level: 'error',
        what: expect.stringMatching(/^authenticated may call/),
      },
      {
        check: 'table-grants',
        level: 'warning',
        what: expect.stringMatching(/^anon may SELECT, INSERT .*only row level security/),
      },
    ]);
    await project.query(`ALTER TABLE ${table} DISABLE ROW LEVEL SECURITY`);
    findings = withoutDurability(await examine(true));
    expect(findings).toMatchObject([
      { check: 'table-grants', level: 'error', what: expect.stringMatching(/nothing stops it/) },
      { check: 'function-grants', level: 'error' },
      { check: 'row-level-security', level: 'error' },
    ]);
    for (const { fix } of findings) await project.query(fix);
    expect(withoutDurability(await examine(true))).toEqual([]);
  });
});
