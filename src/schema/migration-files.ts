import { readFile, readdir } from 'node:fs/promises';
import { DEFAULT_SCHEMA, DEFAULT_TABLE, type SqlNames } from '../store/postgres/sql-names.js';

const FOLDER = new URL('../../migrations/', import.meta.url);

export interface Migration {
  readonly version: number;
  /** The file's name, e.g. `001_outbox_events.sql`. */
  readonly file: string;
  readonly sql: string;
}

/** The numbered files in order, with the configured schema and table in place of the default ones. */
export async function readMigrations(names: SqlNames): Promise<Migration[]> {
  const files = (await readdir(FOLDER)).filter((file) => /^\d{3}_.*\.sql$/.test(file)).toSorted();
  return Promise.all(
    files.map(async (file, index) => {
      const sql = rename(await readFile(new URL(file, FOLDER), 'utf8'), names);
      const needsSchema = index === 0 && names.schema !== DEFAULT_SCHEMA;
      return {
        version: Number(file.slice(0, 3)),
        file,
        sql: needsSchema ? `${createSchema(names.schema)}\n\n${sql}` : sql,
      };
    }),
  );
}

/** Not CREATE SCHEMA IF NOT EXISTS: that needs the right to create schemas even where there is nothing to create. */
function createSchema(schema: string): string {
  return `DO $outbox$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = '${schema}') THEN
    CREATE SCHEMA "${schema}";
  END IF;
END
$outbox$;`;
}

/**
 * The files are written for `public.outbox_events` and run as they lie. For other names, the three ways in which
 * they name an object are replaced: `public.outbox_x`, an index `idx_outbox_x`, a constraint `outbox_x`. What is
 * put in has passed {@link sqlNames}.
 */
function rename(sql: string, { schema, table, prefix }: SqlNames): string {
  const isDefault = schema === DEFAULT_SCHEMA && table === DEFAULT_TABLE;
  return (
    sql
      .replaceAll(/\bpublic\.outbox_(\w+)/g, `"${schema}"."${prefix}_$1"`)
      .replaceAll(/\bidx_outbox_(\w+)/g, `idx_${prefix}_$1`)
      .replaceAll(/\bCONSTRAINT outbox_(\w+)/g, `CONSTRAINT ${prefix}_$1`)
      // In the examples that comments give.
      .replaceAll(/(?<![\w."])outbox_(enqueue(?:_row)?)(?=\()/g, (name, verb) =>
        isDefault ? name : `"${schema}"."${prefix}_${verb}"`,
      )
  );
}
