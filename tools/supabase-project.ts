/**
 * A Supabase project as far as the outbox can tell: PostgreSQL with Supabase's roles, the Data API (PostgREST) and a
 * gateway with keys in front of it. For the tests and the example.
 *
 * Node runs this file as it lies, so: only types that can be erased.
 */
import pg from 'pg';
import { startCluster, type Cluster } from './postgres-cluster.ts';
import { startPostgrest } from './postgrest.ts';
import { startGateway, type ProjectKeys } from './supabase-gateway.ts';

export interface LocalProject {
  readonly url: string;
  readonly keys: ProjectKeys;
  /** As `migrator`, which owns what migrations make: `postgres` at Supabase. */
  readonly databaseUrl: string;
  remove(): Promise<void>;
}

export interface LocalProjectOptions {
  readonly database: string;
  /** Older projects give everything that is created in `public` to everybody; newer ones nothing. */
  readonly grantsEverything?: boolean;
  /** The most rows that the Data API answers. */
  readonly maxRows?: number;
}

// As Supabase makes them.
const ROLES = `
  CREATE ROLE anon NOLOGIN NOINHERIT;
  CREATE ROLE authenticated NOLOGIN NOINHERIT;
  CREATE ROLE service_role NOLOGIN NOINHERIT BYPASSRLS;
  CREATE ROLE authenticator LOGIN NOINHERIT;
  GRANT anon, authenticated, service_role TO authenticator;
  ALTER ROLE authenticator SET statement_timeout = '8s';
  ALTER ROLE authenticator SET lock_timeout = '8s';
  ALTER ROLE anon SET statement_timeout = '3s';
  CREATE ROLE migrator LOGIN CREATEROLE CREATEDB BYPASSRLS;
  GRANT anon, authenticated, service_role TO migrator;`;

const OPEN_SCHEMA = `
  GRANT USAGE ON SCHEMA public TO anon, authenticated, service_role;
  GRANT ALL ON SCHEMA public TO migrator;`;

const OLD_DEFAULT_PRIVILEGES = `
  ALTER DEFAULT PRIVILEGES FOR ROLE migrator GRANT ALL ON TABLES TO anon, authenticated, service_role;
  ALTER DEFAULT PRIVILEGES FOR ROLE migrator GRANT ALL ON FUNCTIONS TO anon, authenticated, service_role;
  ALTER DEFAULT PRIVILEGES FOR ROLE migrator GRANT ALL ON SEQUENCES TO anon, authenticated, service_role;`;

/** A cluster for projects: roles belong to the whole of it. */
export async function startSupabaseCluster(): Promise<Cluster> {
  const cluster = await startCluster({ major: 18 });
  await run(cluster.connectionString(), ROLES);
  return cluster;
}

export async function openLocalProject(
  cluster: Cluster,
  { database, grantsEverything = false, maxRows = 1_000 }: LocalProjectOptions,
): Promise<LocalProject> {
  const as = (role: string): string =>
    cluster.connectionString(database).replace('postgres@', `${role}@`);
  await run(cluster.connectionString(), `CREATE DATABASE ${database} OWNER migrator`);
  await run(
    cluster.connectionString(database),
    OPEN_SCHEMA + (grantsEverything ? OLD_DEFAULT_PRIVILEGES : ''),
  );
  const postgrest = await startPostgrest({ databaseUrl: as('authenticator'), maxRows });
  const gateway = await startGateway(postgrest.url, postgrest.jwtSecret);
  return {
    url: gateway.url,
    keys: gateway.keys,
    databaseUrl: as('migrator'),
    async remove() {
      await gateway.close();
      await postgrest.stop();
      await run(cluster.connectionString(), `DROP DATABASE ${database} WITH (FORCE)`);
    },
  };
}

async function run(connectionString: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
