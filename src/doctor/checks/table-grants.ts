import { databaseCheck, type Complaint } from '../check.js';
import { tableNames } from '../expected-names.js';

interface Granted {
  readonly role: string;
  readonly table: string;
  readonly privileges: readonly string[];
  readonly reaches: boolean;
  readonly rows_open: boolean;
}

export const tableGrants = databaseCheck({
  name: 'table-grants',
  group: 'access',
  looksFor: 'what PUBLIC, anon and authenticated may do with the tables',
  why: 'Supabase gives whatever anon may do to everybody who knows the project’s public key: payloads to read, events to forge',
  needs: 'tables',
  async examine(database, { names }) {
    // Column by column too. What row level security lets through: no policy, no row; but TRUNCATE knows no rows.
    const granted = await database.rows<Granted>(
      `WITH stranger AS (
         SELECT oid, rolname::text AS name, rolbypassrls AS bypasses FROM pg_roles
         WHERE rolname IN ('anon', 'authenticated')
         UNION ALL SELECT 0::oid, 'PUBLIC', false
       ), granted AS (
         SELECT stranger.name AS role, stranger.oid AS role_oid, stranger.bypasses, class.oid AS table_oid,
                class.relname AS table, class.relnamespace, class.relrowsecurity, privilege
         FROM stranger
         CROSS JOIN pg_class AS class
         CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE']) AS privilege
         WHERE class.relnamespace = $1::regnamespace AND class.relname = ANY ($2::text[])
           AND CASE
                 WHEN stranger.oid = 0 THEN
                   EXISTS (SELECT FROM aclexplode(class.relacl) AS access
                           WHERE access.grantee = 0 AND access.privilege_type = privilege)
                   OR EXISTS (SELECT FROM pg_attribute AS attribute, aclexplode(attribute.attacl) AS access
                              WHERE attribute.attrelid = class.oid AND NOT attribute.attisdropped
                                AND access.grantee = 0 AND access.privilege_type = privilege)
                 WHEN privilege IN ('DELETE', 'TRUNCATE') THEN has_table_privilege(stranger.oid, class.oid, privilege)
                 ELSE has_any_column_privilege(stranger.oid, class.oid, privilege)
               END
       )
       SELECT role, "table", array_agg(privilege) AS privileges,
              role_oid = 0 OR has_schema_privilege(role_oid, relnamespace, 'USAGE') AS reaches,
              NOT relrowsecurity OR bypasses OR 'TRUNCATE' = ANY (array_agg(privilege))
                OR EXISTS (SELECT FROM pg_policy AS policy
                           WHERE policy.polrelid = table_oid
                             AND (0 = ANY (policy.polroles) OR role_oid = ANY (policy.polroles))) AS rows_open
       FROM granted
       GROUP BY role, role_oid, bypasses, table_oid, "table", relnamespace, relrowsecurity
       ORDER BY role, "table"`,
      [`"${names.schema}"`, tableNames(names)],
    );
    return granted.map(({ role, table, privileges, reaches, rows_open: open }): Complaint => {
      const place = `"${names.schema}"."${table}"`;
      const outcome = open
        ? 'and nothing stops it'
        : 'and only row level security without a policy stops it';
      return {
        level: open && reaches ? 'error' : 'warning',
        what: reaches
          ? `${role} may ${privileges.join(', ')} in ${place}, ${outcome}`
          : `${role} may ${privileges.join(', ')} in ${place}, and only lacks USAGE of the schema`,
        fix: `REVOKE ALL ON TABLE ${place} FROM ${role};`,
      };
    });
  },
});
