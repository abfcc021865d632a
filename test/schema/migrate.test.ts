import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import pg from 'pg';
import { OutboxError } from '../../src/event/outbox-error.js';
import { migrateOutbox, outboxSql } from '../../src/schema/migrate-outbox.js';
import { migrate } from '../../src/schema/migrate.js';
import { readMigrations } from '../../src/schema/migration-files.js';
import type { PgClient, PgPool, PgQuery } from '../../src/store/postgres/pg-pool.js';
import { PostgresOutboxStore } from '../../src/store/postgres/postgres-outbox-store.js';
import { SCHEMA_VERSION, assertSchemaVersion } from '../../src/store/postgres/schema-version.js';
import { sqlNames } from '../../src/store/postgres/sql-names.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { startTcpProxy } from '../support/tcp-proxy.js';
import { until } from '../support/until.js';
import { catalogVersions, dumpCatalog } from './catalog-dump.js';

const NAMES = sqlNames();
const FILES = readdirSync('migrations')
  .filter((file) => file.endsWith('.sql'))
  .toSorted();
const VERSIONS = FILES.map((_, index) => index + 1);

async function fileTexts(): Promise<string[]> {
  return Promise.all(FILES.map((file) => readFile(`migrations/${file}`, 'utf8')));
}

describe('the files', () => {
  it('are numbered without a gap, up to the version that the code needs', async () => {
    const migrations = await readMigrations(NAMES);
    expect(migrations.map(({ file }) => file)).toEqual(FILES);
    expect(FILES.map((file) => file.slice(0, 4))).toEqual(
      VERSIONS.map((version) => `${String(version).padStart(3, '0')}_`),
    );
    expect(migrations.map(({ version }) => version)).toEqual(VERSIONS);
    expect(VERSIONS.at(-1)).toBe(SCHEMA_VERSION);
  });

  it('are used as they lie for the default names', async () => {
    const used = (await readMigrations(NAMES)).map(({ sql }) =>
      sql.replaceAll(/"public"\."(outbox_\w+)"/g, 'public.$1'),
    );
    expect(used).toEqual(await fileTexts());
  });

  it('under other names mention the default ones nowhere', async () => {
    const migrations = await readMigrations(sqlNames('tenant-1', 'billing_events'));
    const code = migrations
      .map(({ sql }) => sql.replaceAll(/--.*$/gm, '').replaceAll('$outbox$', ''))
      .join('\n');
    expect(code).toContain('"tenant-1"."billing_events"');
    expect(code.match(/\bpublic\b(?!')|outbox_(?!\w+'\)\nON CONFLICT)/g)).toBeNull();
  });
});

describe.each([14, 18] as const)('migrating PostgreSQL %i', (major) => {
  let database: TestDatabase;
  beforeEach(async () => {
    database = await createDatabase(major);
  });
  afterEach(() => database.drop());

  const dump = (names = NAMES) => dumpCatalog(database, names, { bodies: true });

  async function versions(): Promise<number[]> {
    const rows = await database.query<{ version: number }>(
      'SELECT version FROM outbox_migrations ORDER BY version',
    );
    return rows.map(({ version }) => version);
  }

  /** Holds every lock that a migrator could want. Answers what lets go of them. */
  async function lockOut(): Promise<() => Promise<void>> {
    const client = await database.pool.connect();
    await client.query('BEGIN');
    await client.query('LOCK TABLE outbox_events IN ACCESS EXCLUSIVE MODE');
    await client.query('SELECT pg_advisory_xact_lock($1)', [0x6f7574626f78]);
    return async () => {
      await client.query('ROLLBACK');
      client.release();
    };
  }

  it('an empty database applies every file, and says so; again applies none', async () => {
    expect(await migrate(database.pool, NAMES)).toEqual({
      from: 0,
      to: SCHEMA_VERSION,
      applied: FILES,
    });
    expect(await versions()).toEqual(FILES.map((_, index) => index + 1));
    expect(await migrate(database.pool, NAMES)).toEqual({
      from: SCHEMA_VERSION,
      to: SCHEMA_VERSION,
      applied: [],
    });
    await expect(assertSchemaVersion(database.pool, NAMES)).resolves.toBeUndefined();
  });

  it('from ten connections at once, twenty times over, raises no error and is done once', async () => {
    let expected: string | undefined;
    for (let round = 0; round < 20; round++) {
      await database.query('DROP SCHEMA public CASCADE');
      await database.query('CREATE SCHEMA public');
      const results = await Promise.all(
        Array.from({ length: 10 }, () => migrate(database.pool, NAMES)),
      );
      expect(database.pool.totalCount).toBe(10);
      expect(results.map(({ applied }) => applied.length).toSorted((a, b) => a - b)).toEqual([
        ...Array<number>(9).fill(0),
        FILES.length,
      ]);
      expect(await versions()).toEqual(FILES.map((_, index) => index + 1));
      expected ??= await dump();
      expect(await dump()).toBe(expected);
    }
  });

  it('from ten connections at once into schemas that do not exist yet raises no error', async () => {
    for (let round = 0; round < 5; round++) {
      const names = [sqlNames(`tenant-${round}`), sqlNames(`tenant-${round}`, 'billing_events')];
      const results = await Promise.all(
        Array.from({ length: 10 }, (_, index) => migrate(database.pool, names[index % 2]!)),
      );
      expect(results.filter(({ applied }) => applied.length === FILES.length)).toHaveLength(2);
    }
  });

  it('from ten connections at once where the database’s isolation level is another raises no error', async () => {
    await database.query(
      `ALTER DATABASE ${database.name} SET default_transaction_isolation = 'serializable'`,
    );
    await database.terminateBackends();
    await until(() => database.pool.totalCount === 0, { what: 'the pool has noticed' });
    const results = await Promise.all(
      Array.from({ length: 10 }, () => migrate(database.pool, NAMES)),
    );
    expect(results.filter(({ applied }) => applied.length === FILES.length)).toHaveLength(1);
  });

  it('again on the finished schema changes nothing, and waits for no lock', async () => {
    await migrate(database.pool, NAMES);
    const before = await catalogVersions(database, NAMES);
    const release = await lockOut();
    expect(await migrate(database.pool, NAMES)).toMatchObject({ applied: [] });
    await release();
    expect(await catalogVersions(database, NAMES)).toEqual(before);
  });

  it.each(VERSIONS.slice(0, -1))(
    'from version %i keeps what is stored and ends in the same schema',
    async (from) => {
      for (const sql of (await fileTexts()).slice(0, from)) await database.query(sql);
      const [row] = await database.query<{ id: string }>(
        `INSERT INTO outbox_events (event_type, payload, retry_count) VALUES ('a', '{"n":1}', 3) RETURNING id`,
      );
      await expect(assertSchemaVersion(database.pool, NAMES)).rejects.toThrow(
        `is at outbox version ${from}, this code needs ${SCHEMA_VERSION}`,
      );
      expect(await migrate(database.pool, NAMES)).toEqual({
        from,
        to: SCHEMA_VERSION,
        applied: FILES.slice(from),
      });
      const migrated = await dump();
      const store = new PostgresOutboxStore(database.pool, NAMES);
      expect(await store.claim({ limit: 9, leaseMs: 1_000 })).toMatchObject([
        { id: row!.id, payload: { n: 1 }, retryCount: 3 },
      ]);
      await using fresh = await createDatabase(major);
      await migrate(fresh.pool, NAMES);
      expect(migrated).toBe(await dumpCatalog(fresh, NAMES, { bodies: true }));
    },
  );

  it('refuses a database that says it is too new for the code, changes nothing, and waits for no lock', async () => {
    await migrate(database.pool, NAMES);
    await database.query(
      `INSERT INTO outbox_migrations (version, name, breaks_before) VALUES (99, 'future', 98)`,
    );
    const before = await catalogVersions(database, NAMES);
    const store = new PostgresOutboxStore(database.pool, NAMES);
    const release = await lockOut();
    for (const refuse of [() => migrate(database.pool, NAMES), () => store.check()]) {
      const refusing = refuse();
      await expect(refusing).rejects.toThrow(OutboxError);
      await expect(refusing).rejects.toMatchObject({ code: 'SCHEMA_MISMATCH' });
      await expect(refusing).rejects.toThrow(
        `which code written for version ${SCHEMA_VERSION} cannot use any more: upgrade`,
      );
    }
    await release();
    expect(await catalogVersions(database, NAMES)).toEqual(before);
  });

  it('takes a newer database as it is, as long as that does not say otherwise', async () => {
    await migrate(database.pool, NAMES);
    await database.query(
      `INSERT INTO outbox_migrations (version, name, breaks_before) VALUES (99, 'future', ${SCHEMA_VERSION})`,
    );
    const before = await catalogVersions(database, NAMES);
    expect(await migrate(database.pool, NAMES)).toEqual({ from: 99, to: 99, applied: [] });
    await expect(assertSchemaVersion(database.pool, NAMES)).resolves.toBeUndefined();
    expect(await catalogVersions(database, NAMES)).toEqual(before);
  });

  it('that fails half way leaves nothing behind, and can be repeated', async () => {
    // The second file cannot replace a function by one that returns something else.
    await database.query(
      `CREATE FUNCTION outbox_stats() RETURNS integer LANGUAGE sql AS 'SELECT 1'`,
    );
    const before = await dump();
    await expect(migrate(database.pool, NAMES)).rejects.toThrow(/cannot change return type/);
    expect(await dump()).toBe(before);
    expect(database.pool.totalCount).toBe(database.pool.idleCount);
    expect(await database.query('SELECT txid_current_if_assigned() AS open')).toEqual([
      { open: null },
    ]);

    await database.query('DROP FUNCTION outbox_stats()');
    expect(await migrate(database.pool, NAMES)).toMatchObject({ from: 0, applied: FILES });
  });

  it('that loses its connection fails, harms nobody, and can be repeated', async () => {
    const other = await database.pool.connect();
    const proxy = await startTcpProxy(database.connectionString);
    // As an application has it.
    const pool = new pg.Pool({ connectionString: proxy.connectionString });
    pool.on('error', () => {});
    try {
      await other.query('BEGIN');
      await other.query('SELECT pg_advisory_xact_lock($1)', [0x6f7574626f78]);
      const migrating = migrate(pool, NAMES);
      migrating.catch(() => {});
      const waiting = () =>
        other.query(`SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`);
      await until(async () => (await waiting()).rows.length > 0, { what: 'the migrator waits' });
      proxy.dropAll();
      await expect(migrating).rejects.toThrow();
      await other.query('ROLLBACK');
      expect(pool.totalCount).toBe(0);
      await until(async () => (await waiting()).rows.length === 0, { what: 'it has gone' });
      expect(await migrate(pool, NAMES)).toMatchObject({ applied: FILES });
    } finally {
      other.release();
      await pool.end();
      await proxy.close();
    }
  });

  it('gives the connection back as it was lent', async () => {
    const pool = new pg.Pool({ connectionString: database.connectionString, max: 1 });
    try {
      const lent = async () => {
        const client = await pool.connect();
        const { rows } = await client.query<{ pid: number; lock_timeout: string }>(
          `SELECT pg_backend_pid() AS pid, current_setting('lock_timeout') AS lock_timeout`,
        );
        const listeners = client.listenerCount('error');
        client.release();
        return { ...rows[0], listeners };
      };
      const before = await lent();
      expect(await migrate(pool, NAMES)).toMatchObject({ applied: FILES });
      expect(await lent()).toEqual(before);
    } finally {
      await pool.end();
    }
  });

  it('waits for others, but not for ever', async () => {
    const limits: unknown[] = [];
    const pool: PgPool = {
      query: (query: PgQuery) => database.pool.query(query as pg.QueryConfig),
      connect: async () => {
        const client = await database.pool.connect();
        return {
          release: (destroy) => client.release(destroy),
          query: async (query) => {
            const { text } = query as PgQuery;
            if (text.startsWith('SELECT pg_advisory'))
              limits.push((await client.query('SHOW lock_timeout')).rows[0]);
            return client.query(query as pg.QueryConfig);
          },
        } satisfies PgClient;
      },
    };
    await migrate(pool, NAMES);
    expect(limits).toEqual([{ lock_timeout: '30s' }]);
    // It was for the migration only.
    expect(await database.query('SHOW lock_timeout')).toEqual([{ lock_timeout: '0' }]);
  });

  it('needs no right to create schemas where the schema is there already', async () => {
    const role = `${database.name}_owner`;
    await database.query(`CREATE ROLE ${role}`);
    try {
      await database.query(`CREATE SCHEMA "tenant-1" AUTHORIZATION ${role}`);
      await database.query('REVOKE CREATE ON SCHEMA public FROM PUBLIC');
      const pool = new pg.Pool({
        connectionString: database.connectionString,
        options: `-c role=${role}`,
      });
      try {
        const names = sqlNames('tenant-1');
        expect(await migrate(pool, names)).toMatchObject({ applied: FILES });
        const store = new PostgresOutboxStore(pool, names);
        await store.check();
        expect(await store.claim({ limit: 1, leaseMs: 1_000 })).toEqual([]);
        await expect(migrate(pool, sqlNames('tenant-2'))).rejects.toThrow(/permission denied/);
      } finally {
        await pool.end();
      }
    } finally {
      await database.query(`DROP OWNED BY ${role}`);
      await database.query(`DROP ROLE ${role}`);
    }
  });

  it('leaves the application’s own tables and functions alone', async () => {
    await database.query(`
      CREATE TABLE events (id int);
      CREATE TABLE outbox (id int);
      CREATE TABLE my_outbox_events (id int);
      CREATE FUNCTION claim(integer) RETURNS integer LANGUAGE sql AS 'SELECT 1';`);
    const own = new Set(['events', 'outbox', 'my_outbox_events', 'claim']);
    const versionsOf = async () =>
      (await catalogVersions(database, NAMES)).filter((row) =>
        own.has((row as { name: string }).name),
      );
    const before = await versionsOf();
    await migrate(database.pool, NAMES);
    expect(await versionsOf()).toEqual(before);
    expect(before).toHaveLength(4);
  });
});

describe('before anything was migrated', () => {
  it.each([
    [undefined, undefined, 'run "npx nestjs-outbox-relay migrate", or set migrate: true'],
    ['tenant-1', undefined, 'run "npx nestjs-outbox-relay migrate --schema tenant-1", or'],
    ['tenant-1', 'a_events', 'migrate --schema tenant-1 --table a_events", or'],
  ])('the check of %s.%s says what to run', async (schema, table, hint) => {
    await using database = await createDatabase();
    const names = sqlNames(schema, table);
    const checking = new PostgresOutboxStore(database.pool, names).check();
    await expect(checking).rejects.toMatchObject({ code: 'SCHEMA_MISMATCH' });
    await expect(checking).rejects.toThrow('the database has no outbox yet');
    await expect(checking).rejects.toThrow(hint);
  });
});

describe('migrateOutbox', () => {
  it('takes a URL, and leaves no connection behind', async () => {
    await using database = await createDatabase();
    expect(await migrateOutbox({ database: database.connectionString })).toMatchObject({
      from: 0,
      to: SCHEMA_VERSION,
    });
  });

  it('takes a pool, and leaves it open', async () => {
    await using database = await createDatabase();
    await migrateOutbox({ database: database.pool, schema: 'tenant-1', table: 'a_events' });
    expect(await database.query('SELECT count(*)::int AS n FROM "tenant-1".a_events')).toEqual([
      { n: 0 },
    ]);
  });

  it.each([undefined, null, '', ' ', 'localhost', 'mysql://user:secret@host/db', 7, {}])(
    'refuses %j as a database with a word about it, and without showing it',
    async (value) => {
      const migrating = migrateOutbox({ database: value as string });
      await expect(migrating).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
      await expect(migrating).rejects.toThrow(/^database must be a pg Pool or a PostgreSQL URL/);
      await expect(migrating).rejects.not.toThrow(/secret|localhost(?!:)/);
    },
  );
});

describe('the SQL as text', () => {
  it.each<[string, { schema?: string; table?: string }]>([
    ['the default names', {}],
    ['other names', { schema: 'tenant-1', table: 'billing_outbox_events' }],
  ])('under %s makes what the migrator makes, and again without harm', async (_, options) => {
    await using database = await createDatabase();
    await using other = await createDatabase();
    const names = sqlNames(options.schema, options.table);
    await migrate(other.pool, names);
    const expected = await dumpCatalog(other, names, { bodies: true });

    const client = new pg.Client({ connectionString: database.connectionString });
    await client.connect();
    try {
      for (let time = 0; time < 2; time++) {
        await client.query(await outboxSql(options));
        expect(await dumpCatalog(database, names, { bodies: true })).toBe(expected);
      }
    } finally {
      await client.end();
    }
    expect(await migrate(database.pool, names)).toMatchObject({ applied: [] });
  });
});
