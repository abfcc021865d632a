import { databaseCheck, type Complaint } from '../check.js';
import { several } from '../patient.js';
import { functionNames, tableNames } from '../expected-names.js';

const NOT_CALLED = '_enqueue_row';

export const ownRights = databaseCheck({
  name: 'own-rights',
  group: 'access',
  looksFor:
    'rights that the role of this connection lacks, and rows that row level security hides from it',
  why: 'without them the application cannot store or deliver; where rows are hidden it sees an empty outbox, without an error',
  needs: 'server',
  async examine(database, { names }) {
    const [role] = await database.rows<{ name: string }>(
      'SELECT quote_ident(current_user) AS name',
    );
    const name = role?.name ?? '';
    const tables = await database.rows<{
      table: string;
      missing: string[] | null;
      hidden: boolean;
    }>(
      `SELECT class.relname AS table,
              (SELECT array_agg(privilege)
               FROM unnest(CASE WHEN class.relname = $3 THEN ARRAY['SELECT']
                                WHEN class.relname LIKE '%\\_sentinels' THEN ARRAY['SELECT', 'INSERT', 'UPDATE']
                                ELSE ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE'] END) AS privilege
               WHERE NOT has_table_privilege(class.oid, privilege)) AS missing,
              row_security_active(class.oid)
                AND NOT EXISTS (SELECT FROM pg_policy AS policy
                                WHERE policy.polrelid = class.oid
                                  AND (0 = ANY (policy.polroles)
                                       OR EXISTS (SELECT FROM unnest(policy.polroles) AS granted (oid)
                                                  WHERE granted.oid <> 0
                                                    AND pg_has_role(granted.oid, 'USAGE')))) AS hidden
       FROM pg_class AS class
       WHERE class.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1)
         AND class.relname = ANY ($2::text[])
       ORDER BY class.relname`,
      [names.schema, tableNames(names), `${names.prefix}_migrations`],
    );
    const forbidden = await database.rows<{ signature: string }>(
      `SELECT format('%I.%I(%s)', $1::text, proname, pg_get_function_identity_arguments(oid)) AS signature
       FROM pg_proc
       WHERE pronamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1)
         AND proname = ANY ($2::text[]) AND NOT has_function_privilege(oid, 'EXECUTE')
       ORDER BY 1`,
      [
        names.schema,
        functionNames(names).filter(
          (one) => !one.endsWith(NOT_CALLED) && !one.endsWith('_as_json'),
        ),
      ],
    );
    const complaints = tables.flatMap(({ table, missing, hidden }): Complaint[] => {
      const place = `"${names.schema}"."${table}"`;
      const found: Complaint[] = [];
      if (missing !== null) {
        const list = missing.join(', ');
        found.push({
          level: 'error',
          what: `the role ${name} may not ${list} in ${place}`,
          fix: `GRANT ${list} ON ${place} TO ${name};`,
        });
      }
      if (hidden)
        found.push({
          level: 'error',
          what: `row level security hides every row of ${place} from the role ${name}`,
          fix: `CREATE POLICY app_uses_${table} ON ${place} TO ${name} USING (true) WITH CHECK (true);`,
        });
      return found;
    });
    if (forbidden.length > 0) {
      const list = forbidden.map(({ signature }) => signature);
      complaints.push({
        level: 'error',
        what: `the role ${name} may not call ${several(list.length, 'function')} of the outbox, e.g. ${list[0]}`,
        fix: `GRANT EXECUTE ON FUNCTION ${list.join(', ')} TO ${name};`,
      });
    }
    return complaints;
  },
});
