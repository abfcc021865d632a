import path from 'node:path';
import pg from 'pg';
import { startCluster, type Cluster } from '../../tools/postgres-cluster.ts';
import type { Entry } from '../contenders/registry.ts';
import type { Settings } from './settings.ts';
import { Child } from './remote.ts';
import { BENCH } from './places.ts';

/** Where scenarios work: a PostgreSQL of their own, and children that live in it. */
export class Lab {
  readonly settings: Settings;
  private readonly cluster: Cluster;
  private readonly children = new Set<Child>();

  private constructor(settings: Settings, cluster: Cluster) {
    this.settings = settings;
    this.cluster = cluster;
  }

  /** PostgreSQL 18 as it comes: fsync, synchronous_commit, autovacuum and all sizes as they are by default. */
  static async open(settings: Settings, server: Record<string, string> = {}): Promise<Lab> {
    const durable = settings.size !== 'smoke';
    return new Lab(settings, await startCluster({ major: 18, durable, settings: server }));
  }

  get postmaster(): number {
    if (this.cluster.pid === undefined) throw new Error('PostgreSQL is not running');
    return this.cluster.pid;
  }

  /** An empty database. @returns its URL */
  async freshDatabase(name = 'bench'): Promise<string> {
    await this.query(
      this.cluster.connectionString(),
      `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`,
    );
    await this.query(this.cluster.connectionString(), `CREATE DATABASE ${name}`);
    return this.cluster.connectionString(name);
  }

  /** Everything on disk, dead rows gone, statistics fresh: the same start for all. */
  async settle(url: string): Promise<void> {
    await this.query(url, 'VACUUM ANALYZE');
    await this.query(url, 'CHECKPOINT');
  }

  async query<Row extends pg.QueryResultRow>(
    url: string,
    text: string,
    values: unknown[] = [],
  ): Promise<Row[]> {
    const client = await this.connect(url);
    try {
      return (await client.query<Row>(text, values)).rows;
    } finally {
      await client.end();
    }
  }

  async connect(url: string): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: url });
    client.on('error', () => {}); // a database that is dropped under it
    await client.connect();
    return client;
  }

  async version(): Promise<string> {
    const [row] = await this.query<{ server_version: string }>(
      this.cluster.connectionString(),
      'SHOW server_version',
    );
    return row?.server_version ?? '?';
  }

  /** A process of its own for a contender. */
  spawn(
    { key, module, options }: Entry,
    url: string,
    { program = 'host.ts', execArgv = [] }: { program?: string; execArgv?: string[] } = {},
  ): Child {
    const spawned = new Child(
      key,
      path.join(BENCH, 'harness', program),
      [path.join(BENCH, module), url, JSON.stringify(options)],
      { execArgv },
    );
    this.children.add(spawned);
    return spawned;
  }

  async end(child: Child): Promise<void> {
    await child.kill();
    this.children.delete(child);
  }

  async close(): Promise<void> {
    await Promise.all([...this.children].map((child) => this.end(child)));
    await this.cluster.remove();
  }
}
