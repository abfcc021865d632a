import pg from 'pg';
import { examine } from '../../src/doctor/doctor.js';
import type { Examination, Finding } from '../../src/doctor/finding.js';
import { LONG_TRANSACTION_MS, PatientDatabase, type Patient } from '../../src/doctor/patient.js';
import { BOSS_SCHEMA } from '../../src/relay/open-boss.js';
import { migrate } from '../../src/schema/migrate.js';
import { PostgresOutboxStore } from '../../src/store/postgres/postgres-outbox-store.js';
import { sqlNames, type SqlNames } from '../../src/store/postgres/sql-names.js';
import type { Cluster } from '../../tools/postgres-cluster.js';

/** A database to break, in a cluster of its own: settings belong to the whole of it. */
export interface Sick extends AsyncDisposable {
  readonly connectionString: string;
  readonly store: PostgresOutboxStore;
  readonly names: SqlNames;
  /** Statement by statement, as psql runs them. */
  run(sql: string): Promise<void>;
  query<Row extends pg.QueryResultRow = pg.QueryResultRow>(sql: string): Promise<Row[]>;
  examine(changes?: Partial<Patient>): Promise<Examination>;
  findings(changes?: Partial<Patient>): Promise<readonly Finding[]>;
  /** New sessions, as after a setting was changed. */
  reconnect(): Promise<void>;
}

let number = 0;

export async function admit(
  cluster: Cluster,
  {
    names = sqlNames(),
    migrated = true,
    prepare = '',
  }: { names?: SqlNames; migrated?: boolean; prepare?: string } = {},
): Promise<Sick> {
  const database = `sick_${++number}`;
  await asAdmin(cluster, `CREATE DATABASE ${database}`);
  const connectionString = cluster.connectionString(database);
  let pool = open(connectionString);
  if (prepare !== '') await pool.query(prepare);
  if (migrated) await migrate(pool, names);
  const patient = (): Patient => ({
    store: new PostgresOutboxStore(pool, names),
    names,
    database: new PatientDatabase(pool, pool.options),
    listeners: undefined,
    completedMs: undefined,
    bossSchema: BOSS_SCHEMA,
    longTransactionMs: LONG_TRANSACTION_MS,
  });
  const doExamine = (changes: Partial<Patient> = {}): Promise<Examination> =>
    examine({ ...patient(), ...changes });
  return {
    connectionString,
    get store() {
      return new PostgresOutboxStore(pool, names);
    },
    names,
    async run(sql) {
      const client = await pool.connect();
      try {
        for (const statement of statementsOf(sql)) await client.query(statement);
      } finally {
        client.release();
      }
    },
    async query<Row extends pg.QueryResultRow>(sql: string) {
      return (await pool.query<Row>(sql)).rows;
    },
    examine: doExamine,
    findings: async (changes) => (await doExamine(changes)).findings,
    async reconnect() {
      await pool.end();
      pool = open(connectionString);
    },
    async [Symbol.asyncDispose]() {
      await pool.end();
      await asAdmin(cluster, `DROP DATABASE ${database} WITH (FORCE)`);
    },
  };
}

/** ALTER SYSTEM and CREATE INDEX CONCURRENTLY cannot be part of several statements sent at once. */
function statementsOf(sql: string): string[] {
  if (sql.includes('$')) return [sql];
  return sql
    .replaceAll(/--.*$/gm, '')
    .split(';')
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '');
}

function open(connectionString: string): pg.Pool {
  const pool = new pg.Pool({ connectionString, max: 3 });
  pool.on('error', () => {}); // a session is terminated as a remedy
  return pool;
}

export async function asAdmin(cluster: Cluster, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: cluster.connectionString() });
  await client.connect();
  try {
    for (const statement of statementsOf(sql)) await client.query(statement);
  } finally {
    await client.end();
  }
}
