import type { SqlNames } from '../../src/store/postgres/sql-names.js';
import type { TestDatabase } from '../support/database.js';

type Database = Pick<TestDatabase, 'query'>;

export interface DumpOptions {
  /** With the source of the functions. Default: their signatures. */
  bodies?: boolean;
  /** Roles whose grants are left out: they exist in a cluster for all its databases or for none. */
  withoutGrantsTo?: string[];
}

/**
 * The outbox of a database as text, under the default names whatever it is called, and the same for every supported
 * PostgreSQL: tables, columns, constraints, indexes, functions, row level security, policies, triggers, grants.
 */
export async function dumpCatalog(
  database: Database,
  names: SqlNames,
  { bodies = false, withoutGrantsTo = [] }: DumpOptions = {},
): Promise<string> {
  const lines: string[] = [];
  for (const table of await relations(database, names)) {
    lines.push(`${table.kind} ${table.name}`, ...indent(comment(table.comment)));
    lines.push(...indent(await columns(database, table.oid)));
    lines.push(...indent(await constraints(database, table.oid)));
    lines.push(...indent(await indexes(database, table.oid)));
    lines.push(...indent(await extras(database, table.oid)));
    lines.push(
      ...indent(await grants(database, 'pg_class', 'relacl', table.oid, withoutGrantsTo)),
      '',
    );
  }
  for (const { oid, signature, source } of await functions(database, names)) {
    lines.push(signature, ...(bodies ? indent(source.split('\n')) : []));
    lines.push(...indent(await grants(database, 'pg_proc', 'proacl', oid, withoutGrantsTo)), '');
  }
  return underDefaultNames(lines.join('\n'), names);
}

/** What changes with every rewrite of a catalog row, even one that leaves it as it was. */
export async function catalogVersions(
  database: Database,
  { schema }: SqlNames,
): Promise<unknown[]> {
  return database.query(
    `SELECT 'class' AS kind, relname AS name, oid, xmin::text FROM pg_class WHERE relnamespace = $1::regnamespace
     UNION ALL
     SELECT 'proc', proname, oid, xmin::text FROM pg_proc WHERE pronamespace = $1::regnamespace
     UNION ALL
     SELECT 'constraint', conname, oid, xmin::text FROM pg_constraint WHERE connamespace = $1::regnamespace
     UNION ALL
     SELECT 'namespace', nspname, oid, xmin::text FROM pg_namespace WHERE oid = $1::regnamespace
     ORDER BY 1, 2, 3`,
    [`"${schema}"`],
  );
}

async function relations(database: Database, { schema }: SqlNames) {
  return database.query<{ oid: number; name: string; kind: string; comment: string | null }>(
    `SELECT class.oid, class.relname AS name, obj_description(class.oid, 'pg_class') AS comment,
            CASE class.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'S' THEN 'sequence'
                               ELSE class.relkind::text END AS kind
     FROM pg_class AS class
     WHERE class.relnamespace = $1::regnamespace AND class.relkind <> 'i'
     ORDER BY class.relname`,
    [`"${schema}"`],
  );
}

async function columns(database: Database, table: number): Promise<string[]> {
  const rows = await database.query<{ text: string; comment: string | null }>(
    `SELECT concat_ws(' ', attribute.attname, format_type(attribute.atttypid, attribute.atttypmod),
                      CASE WHEN attribute.attnotnull THEN 'NOT NULL' END,
                      'DEFAULT ' || pg_get_expr(def.adbin, def.adrelid)) AS text,
            col_description(attribute.attrelid, attribute.attnum) AS comment
     FROM pg_attribute AS attribute
     LEFT JOIN pg_attrdef AS def ON def.adrelid = attribute.attrelid AND def.adnum = attribute.attnum
     WHERE attribute.attrelid = $1 AND attribute.attnum > 0 AND NOT attribute.attisdropped
     ORDER BY attribute.attnum`,
    [table],
  );
  return rows.flatMap((row) => [row.text].concat(indent(comment(row.comment))));
}

async function constraints(database: Database, table: number): Promise<string[]> {
  // NOT NULL is a constraint of its own (n) only from PostgreSQL 18 on; the columns show it.
  const rows = await database.query<{ text: string }>(
    `SELECT format('CONSTRAINT %s %s', conname, pg_get_constraintdef(oid)) AS text
     FROM pg_constraint WHERE conrelid = $1 AND contype <> 'n' ORDER BY conname`,
    [table],
  );
  return rows.map((row) => row.text);
}

async function indexes(database: Database, table: number): Promise<string[]> {
  const rows = await database.query<{ text: string }>(
    `SELECT pg_get_indexdef(indexrelid) AS text FROM pg_index
     WHERE indrelid = $1 AND NOT indisprimary ORDER BY indexrelid::regclass::text`,
    [table],
  );
  return rows.map((row) => row.text);
}

async function extras(database: Database, table: number): Promise<string[]> {
  const rows = await database.query<{ text: string }>(
    `SELECT 'ROW LEVEL SECURITY ' || CASE WHEN relforcerowsecurity THEN 'FORCED' ELSE 'ENABLED' END AS text
     FROM pg_class WHERE oid = $1 AND relrowsecurity
     UNION ALL
     SELECT format('POLICY %s', polname) FROM pg_policy WHERE polrelid = $1
     UNION ALL
     SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = $1 AND NOT tgisinternal
     UNION ALL
     SELECT 'WITH (' || array_to_string(reloptions, ', ') || ')' FROM pg_class
     WHERE oid = $1 AND reloptions IS NOT NULL
     ORDER BY 1`,
    [table],
  );
  return rows.map((row) => row.text);
}

async function grants(
  database: Database,
  catalog: 'pg_class' | 'pg_proc',
  acl: 'relacl' | 'proacl',
  oid: number,
  without: string[],
): Promise<string[]> {
  const owner = acl === 'relacl' ? 'relowner' : 'proowner';
  const kind = acl === 'relacl' ? 'r' : 'f';
  const rows = await database.query<{ text: string }>(
    `SELECT format('GRANT %s TO %s', string_agg(privilege_type, ', ' ORDER BY privilege_type),
                   coalesce(role.rolname, 'PUBLIC')) AS text
     FROM ${catalog} AS object
     CROSS JOIN LATERAL aclexplode(coalesce(${acl}, acldefault('${kind}', ${owner}))) AS access
     LEFT JOIN pg_roles AS role ON role.oid = access.grantee
     WHERE object.oid = $1 AND access.grantee <> ${owner}
       AND coalesce(role.rolname, '') <> ALL ($2)
     GROUP BY role.rolname ORDER BY role.rolname`,
    [oid, without],
  );
  return rows.map((row) => row.text);
}

async function functions(database: Database, { schema }: SqlNames) {
  return database.query<{ oid: number; signature: string; source: string }>(
    `SELECT proc.oid, proc.prosrc AS source,
            format('function %s(%s) RETURNS %s LANGUAGE %s %s%s%s', proc.proname,
                   pg_get_function_arguments(proc.oid), pg_get_function_result(proc.oid), lanname,
                   CASE provolatile WHEN 'v' THEN 'VOLATILE' WHEN 's' THEN 'STABLE' ELSE 'IMMUTABLE' END,
                   CASE WHEN prosecdef THEN ' SECURITY DEFINER' ELSE '' END,
                   coalesce(' SET ' || array_to_string(proconfig, ' SET '), '')) AS signature
     FROM pg_proc AS proc JOIN pg_language ON pg_language.oid = proc.prolang
     WHERE proc.pronamespace = $1::regnamespace
     ORDER BY proc.proname, pg_get_function_arguments(proc.oid)`,
    [`"${schema}"`],
  );
}

function underDefaultNames(text: string, { schema, prefix }: SqlNames): string {
  // Some of PostgreSQL's own texts name the schema and some do not.
  const quoted = `(?:"${schema}"|${schema})\\."?`;
  return text
    .replaceAll(new RegExp(`\\b${prefix}_`, 'g'), 'outbox_')
    .replaceAll(new RegExp(`\\bidx_${prefix}_`, 'g'), 'idx_outbox_')
    .replaceAll(new RegExp(`${quoted}(outbox_\\w+)"?`, 'g'), '$1');
}

function comment(text: string | null): string[] {
  return text === null ? [] : [`-- ${text}`];
}

function indent(lines: string[]): string[] {
  return lines.map((line) => `  ${line}`);
}
