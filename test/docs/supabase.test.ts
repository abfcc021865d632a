import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parseSync, printSync } from '@swc/core';
import { createClient } from '@supabase/supabase-js';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { migrate } from '../../src/schema/migrate.js';
import { sqlNames } from '../../src/store/postgres/sql-names.js';
import { describeOnSupabase, type Project } from '../support/supabase/projects.js';
import { until } from '../support/until.js';
import { readMarkdown, ROOT, type CodeBlock } from './markdown.js';
import { compileSnippets } from './snippet-project.js';

const english = readMarkdown('docs/supabase.md');
const korean = readMarkdown('docs/supabase.ko.md');
const sql = english.blocks.filter(({ lang }) => lang === 'sql').map(({ code }) => code);

describe('docs/supabase', () => {
  it('says the same in Korean: the same code, sections and tables', () => {
    expect(korean.blocks.map(withoutComments)).toEqual(english.blocks.map(withoutComments));
    expect(korean.headings.map(({ level }) => level)).toEqual(
      english.headings.map(({ level }) => level),
    );
    const shape = ({ tables }: typeof english) =>
      tables.map((table) => table.map((row) => row.length));
    expect(shape(korean)).toEqual(shape(english));
  });

  it('shows code that compiles strictly', async () => {
    const { count, errors } = await compileSnippets('docs/supabase.md', 'supabase');
    expect(errors).toEqual([]);
    expect(count).toBe(3);
  });

  it.each(['docs/supabase.md', 'docs/supabase.ko.md', 'README.md', 'README.ko.md'])(
    '%s names the version of supabase-js that the tests run with',
    (file) => {
      const manifest = path.join(ROOT, 'node_modules/@supabase/supabase-js/package.json');
      const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string };
      const [, minor = ''] = /^(\d+\.\d+)\./.exec(version) ?? [];
      expect(readFileSync(path.join(ROOT, file), 'utf8')).toContain(minor);
    },
  );
});

describeOnSupabase('the SQL of docs/supabase.md', (kind) => {
  // Its names are those of a reader's own: not in a project that is not ours.
  if (kind.hosted) {
    it('is not tried in a hosted project', () => {
      expect(kind.hosted).toBe(true);
    });
    return;
  }
  let project: Project;
  beforeAll(async () => {
    project = await kind.open();
    await migrate(project.pool, sqlNames());
    for (const block of sql) await project.query(block);
    await project.query(`NOTIFY pgrst, 'reload schema'`);
    await until(
      async () => {
        const { error } = await call(project.keys.anon, 'request_quote', { project_name: 'x' });
        return error?.code !== 'PGRST202';
      },
      { what: 'the Data API knows the new functions' },
    );
  });
  afterAll(async () => {
    await project[Symbol.asyncDispose]();
  });

  const events = () =>
    project.query('SELECT event_type, payload FROM outbox_events ORDER BY created_at DESC');
  const call = async (key: string, name: string, args: object) =>
    createClient(project.url, key).rpc(name, args);

  it('creates a quote request and its event in one call, for the server alone', async () => {
    const args = { project_name: 'Office renovation' };
    const { data: id } = await call(project.keys.secret, 'create_quote_request', args);
    expect(await events()).toEqual([
      {
        event_type: 'quote_request.created',
        payload: { quoteRequestId: id, projectName: 'Office renovation' },
      },
    ]);
    for (const key of [project.keys.anon, project.keys.authenticated!]) {
      expect((await call(key, 'create_quote_request', args)).error?.code).toBe('42501');
    }
  });

  it('lets users who are signed in call a function that decides, and nobody else', async () => {
    const long = { project_name: 'x'.repeat(101) };
    const { authenticated = '', anon } = project.keys;
    expect(
      (await call(authenticated, 'request_quote', { project_name: 'Kitchen' })).error,
    ).toBeNull();
    expect((await call(authenticated, 'request_quote', long)).error?.message).toBe(
      'the name of the project is too long',
    );
    expect((await call(anon, 'request_quote', { project_name: 'x' })).error?.code).toBe('42501');
    expect(await events()).toHaveLength(2);
  });

  it('tells of a changed supplier by the trigger, and of nothing else', async () => {
    const table = createClient(project.url, project.keys.secret).from('quote_requests');
    const { data } = await table.update({ supplier_id: 7 }).eq('project_name', 'Kitchen').select();
    await table.update({ project_name: 'Bathroom' }).eq('supplier_id', 7);
    const [newest] = await events();
    expect(newest).toEqual({
      event_type: 'quote_request.assigned',
      payload: { quoteRequestId: (data as { id: string }[])[0]!.id, supplier_id: 7 },
    });
    expect(await events()).toHaveLength(3);
  });
});

function withoutComments({ lang, code }: CodeBlock): string {
  if (lang === 'bash') return code;
  if (lang === 'sql') return code.replaceAll(/\s*--.*$/gm, '');
  return printSync(parseSync(code, { syntax: 'typescript', decorators: true, target: 'es2022' }))
    .code;
}
