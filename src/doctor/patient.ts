import type { ClientConfig } from 'pg';
import { ALIVE_WITHIN_MS } from '../relay/heartbeat.js';
import type { KnownListener, RelayState } from '../store/activity-store.js';
import type { OutboxStore } from '../store/outbox-store.js';
import { AS_TEXT, ask, type PgPool } from '../store/postgres/pg-pool.js';
import { DEFAULT_SCHEMA, DEFAULT_TABLE, type SqlNames } from '../store/postgres/sql-names.js';

/** A transaction open for longer keeps more rows from being vacuumed than the outbox likes. */
export const LONG_TRANSACTION_MS = 300_000;

/** What the doctor looks at. */
export interface Patient {
  readonly store: OutboxStore;
  readonly names: SqlNames;
  /** `undefined`: only the store can be asked. */
  readonly database: PatientDatabase | undefined;
  /** The listeners of this process; `undefined` where there is no application, as on the command line. */
  readonly listeners: readonly KnownListener[] | undefined;
  /** For how long this process keeps completed events, in milliseconds; `undefined` if nobody knows. */
  readonly completedMs: number | false | undefined;
  /** Where the outbox's own pg-boss lives. `undefined`: the application has one of its own, or none. */
  readonly bossSchema: string | undefined;
  /** A transaction open for longer is worth a word, in milliseconds. */
  readonly longTransactionMs: number;
}

export class PatientDatabase {
  constructor(
    readonly pool: PgPool,
    /** How the connection is made, if that is known. */
    readonly clientConfig: ClientConfig | undefined,
  ) {}

  /** The rows of a query, as JSON has them: numbers are numbers, whatever parsers the pool has. */
  async rows<Row>(text: string, values: unknown[] = []): Promise<Row[]> {
    const { rows } = await ask(this.pool, {
      text: `SELECT coalesce(json_agg(row_to_json(found)), '[]')::text AS rows FROM (${text}) AS found`,
      values,
      types: AS_TEXT,
    });
    return JSON.parse((rows[0] as { rows: string }).rows) as Row[];
  }

  async settings(names: readonly string[]): Promise<Record<string, Setting>> {
    const rows = await this.rows<Setting & { name: string }>(
      `SELECT name, setting, source, quote_ident(current_database()) AS database, quote_ident(current_user) AS role
       FROM pg_catalog.pg_settings WHERE name = ANY ($1::text[]) ORDER BY name`,
      [names],
    );
    return Object.fromEntries(rows.map(({ name, ...setting }) => [name, setting]));
  }
}

export interface Setting {
  readonly setting: string;
  /** Where it was set: `configuration file`, `database`, `user`, `client` … */
  readonly source: string;
  /** This database and this role, quoted. */
  readonly database: string;
  readonly role: string;
}

/** The relays that are there; `undefined` with a store that keeps no reports. */
export async function aliveRelays({ store }: Patient): Promise<RelayState[] | undefined> {
  const relays = await store.activity?.relays();
  return relays?.filter(
    ({ stoppedAt, silentMs }) => stoppedAt === null && silentMs <= ALIVE_WITHIN_MS,
  );
}

/** A command of this package, for this outbox. */
export function command({ names }: Patient, text: string): string {
  const schema = names.schema === DEFAULT_SCHEMA ? '' : ` --schema ${names.schema}`;
  const table = names.table === DEFAULT_TABLE ? '' : ` --table ${names.table}`;
  return `npx nestjs-outbox-relay ${text}${schema}${table}`;
}

/** `1 event`, `2 events` */
export function several(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? '' : 's'}`;
}

/** A value as a shell word. */
export function shellWord(text: string): string {
  return /^[\w.:/@-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** How to undo a setting, by where it was made. */
export function resetSetting(name: string, value: string, setting: Setting): string {
  const { source, database, role } = setting;
  if (source === 'database')
    return `ALTER DATABASE ${database} RESET ${name};  -- new sessions see it`;
  if (source === 'user') return `ALTER ROLE ${role} RESET ${name};  -- new sessions see it`;
  if (source === 'database user')
    return `ALTER ROLE ${role} IN DATABASE ${database} RESET ${name};  -- new sessions see it`;
  if (source === 'client') return `take ${name} out of the connection's options (options=-c …)`;
  return `ALTER SYSTEM SET ${name} = ${value}; SELECT pg_reload_conf();  -- a managed database: in its console`;
}
