import { describe, expect, it } from '@jest/globals';
import pg from 'pg';
import type { Cluster } from '../../../tools/postgres-cluster.js';
import { hasPostgrest } from '../../../tools/postgrest.js';
import type { ProjectKeys } from '../../../tools/supabase-gateway.js';
import {
  openLocalProject,
  startSupabaseCluster,
  type LocalProjectOptions,
} from '../../../tools/supabase-project.js';
import { opened } from '../leaks.js';

/** A Supabase project, real or as good as. */
export interface Project extends AsyncDisposable {
  readonly url: string;
  readonly keys: Pick<ProjectKeys, 'secret' | 'anon'> & Partial<ProjectKeys>;
  /** As the role that owns what migrations make: `postgres` at Supabase. */
  readonly databaseUrl: string;
  readonly pool: pg.Pool;
  query<Row extends pg.QueryResultRow = pg.QueryResultRow>(
    text: string,
    values?: unknown[],
  ): Promise<Row[]>;
}

export interface ProjectKind {
  readonly name: string;
  /** Names of the outbox there. Never those of an application's own in a project that is not ours. */
  readonly table: string;
  readonly hosted: boolean;
  open(): Promise<Project>;
}

// Not SUPABASE_URL and the like: those a developer may have set for an application, and the tests empty the tables
// they work on.
const HOSTED = {
  url: process.env['OUTBOX_TEST_SUPABASE_URL'],
  secret: process.env['OUTBOX_TEST_SUPABASE_SECRET_KEY'],
  anon: process.env['OUTBOX_TEST_SUPABASE_ANON_KEY'],
  databaseUrl: process.env['OUTBOX_TEST_SUPABASE_DATABASE_URL'],
};

let cluster: Promise<Cluster> | undefined;
let projectsOpen = 0;

const LOCAL_KINDS: readonly ProjectKind[] = [
  // As few rows as PostgREST can be told: what answers rows, and not one value, is cut.
  local('a project that grants nothing by itself, with max-rows 5', {
    database: 'app_new',
    maxRows: 5,
  }),
  local('an older project, which grants everything', {
    database: 'app_old',
    grantsEverything: true,
  }),
];

function kinds(): readonly ProjectKind[] {
  const { url, secret, anon, databaseUrl } = HOSTED;
  if (url !== undefined) {
    if (secret === undefined || anon === undefined || databaseUrl === undefined) {
      throw new Error(
        'With OUTBOX_TEST_SUPABASE_URL, set OUTBOX_TEST_SUPABASE_SECRET_KEY, _ANON_KEY and _DATABASE_URL too.',
      );
    }
    return [hosted(url, { secret, anon }, databaseUrl)];
  }
  return hasPostgrest() ? LOCAL_KINDS : [];
}

/** Describes the same for every kind of project. Without any, it says so, and fails in CI. */
export function describeOnSupabase(what: string, body: (kind: ProjectKind) => void): void {
  const all = kinds();
  if (all.length === 0) {
    describe(what, () => didNotRun(what));
    return;
  }
  describe.each(all)(`${what}: $name`, (kind) => body(kind));
}

/** In place of tests that need PostgREST: says so, loudly, and fails in CI. */
export function didNotRun(what: string): void {
  it('DID NOT RUN: there is no PostgREST for this platform (only for linux-x64)', () => {
    process.stderr.write(`\n${what}: NOT TESTED. There is no PostgREST below test/postgrest.\n\n`);
    expect(process.env['CI']).toBeFalsy();
  });
}

function local(name: string, options: LocalProjectOptions): ProjectKind {
  return {
    name,
    table: 'outbox_events',
    hosted: false,
    async open() {
      projectsOpen++;
      cluster ??= startSupabaseCluster();
      const opening = cluster;
      const localProject = await openLocalProject(await opening, options);
      return project(localProject.url, localProject.keys, localProject.databaseUrl, async () => {
        await localProject.remove();
        if (--projectsOpen > 0) return;
        cluster = undefined;
        await (await opening).remove();
      });
    },
  };
}

function hosted(url: string, keys: Project['keys'], databaseUrl: string): ProjectKind {
  return {
    name: 'a hosted project',
    table: 'outbox_selftest_events',
    hosted: true,
    open: async () => project(url, keys, databaseUrl, async () => {}),
  };
}

function project(
  url: string,
  keys: Project['keys'],
  databaseUrl: string,
  end: () => Promise<void>,
): Project {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 4 });
  pool.on('error', () => {}); // the database is dropped under it
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    closing ??= (async () => {
      closed();
      await pool.end();
      await end();
    })();
    await closing;
  };
  const closed = opened({
    scope: 'file',
    describe: () => `a Supabase project at ${url}`,
    end: close,
  });
  return {
    url,
    keys,
    databaseUrl,
    pool,
    async query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]) {
      return (await pool.query<Row>(text, values)).rows;
    },
    [Symbol.asyncDispose]: close,
  };
}
