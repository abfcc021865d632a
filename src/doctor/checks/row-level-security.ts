import { databaseCheck, type Complaint } from '../check.js';
import { tableNames } from '../expected-names.js';

interface Found {
  readonly table: string;
  readonly enabled: boolean;
  readonly has_strangers: boolean;
  /** Names as SQL writes them. */
  readonly open_policies: readonly { name: string; roles: string }[];
}

export const rowLevelSecurity = databaseCheck({
  name: 'row-level-security',
  group: 'access',
  looksFor:
    'row level security that is off, or policies that open it to PUBLIC, anon or authenticated',
  why: 'it is the second lock: one GRANT too many, and every payload can be read through a Data API',
  needs: 'tables',
  async examine(database, { names }) {
    const found = await database.rows<Found>(
      `SELECT class.relname AS table, class.relrowsecurity AS enabled,
              EXISTS (SELECT FROM pg_roles WHERE rolname IN ('anon', 'authenticated')) AS has_strangers,
              coalesce((SELECT json_agg(json_build_object('name', quote_ident(policy.polname), 'roles', stranger.names))
                        FROM pg_policy AS policy
                        CROSS JOIN LATERAL (
                          SELECT string_agg(coalesce(role.rolname, 'PUBLIC'), ', ') AS names
                          FROM unnest(policy.polroles) AS granted (oid)
                          LEFT JOIN pg_roles AS role ON role.oid = granted.oid
                          WHERE granted.oid = 0 OR role.rolname IN ('anon', 'authenticated')
                        ) AS stranger
                        WHERE policy.polrelid = class.oid AND policy.polpermissive AND stranger.names IS NOT NULL),
                       '[]') AS open_policies
       FROM pg_class AS class
       WHERE class.relnamespace = $1::regnamespace AND class.relname = ANY ($2::text[])
       ORDER BY class.relname`,
      [`"${names.schema}"`, tableNames(names)],
    );
    return found.flatMap((one): Complaint[] => {
      const place = `"${names.schema}"."${one.table}"`;
      const off: Complaint = {
        level: one.has_strangers ? 'error' : 'warning',
        what: `row level security is off for ${place}`,
        fix: `ALTER TABLE ${place} ENABLE ROW LEVEL SECURITY;`,
      };
      const policies = one.open_policies.map(({ name, roles }): Complaint => ({
        level: 'warning',
        what: `the policy ${name} opens ${place} to ${roles}`,
        fix: `DROP POLICY ${name} ON ${place};`,
      }));
      return one.enabled ? policies : [off].concat(policies);
    });
  },
});
