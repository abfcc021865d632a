import { databaseCheck, type Complaint } from '../check.js';
import { functionNames } from '../expected-names.js';

export const functionGrants = databaseCheck({
  name: 'function-grants',
  group: 'access',
  looksFor: 'functions that PUBLIC, anon or authenticated may call',
  why: 'a Data API offers each of them at /rpc/…: strangers could enqueue, claim or discard events',
  needs: 'tables',
  async examine(database, { names }) {
    const granted = await database.rows<{ role: string; signature: string }>(
      `WITH stranger AS (
         SELECT oid, rolname::text AS name FROM pg_roles WHERE rolname IN ('anon', 'authenticated')
         UNION ALL SELECT 0::oid, 'PUBLIC'
       )
       SELECT stranger.name AS role,
              format('%I.%I(%s)', $1::text, proc.proname, pg_get_function_identity_arguments(proc.oid)) AS signature
       FROM stranger
       CROSS JOIN pg_proc AS proc
       JOIN pg_namespace AS namespace ON namespace.oid = proc.pronamespace
       WHERE namespace.nspname = $1 AND proc.proname = ANY ($2::text[])
         AND CASE WHEN stranger.oid = 0
               THEN EXISTS (SELECT FROM aclexplode(coalesce(proc.proacl, acldefault('f', proc.proowner))) AS access
                            WHERE access.grantee = 0 AND access.privilege_type = 'EXECUTE')
               ELSE has_function_privilege(stranger.oid, proc.oid, 'EXECUTE')
             END
       ORDER BY 1, 2`,
      [names.schema, functionNames(names)],
    );
    const roles = [...new Set(granted.map(({ role }) => role))];
    return roles.map((role): Complaint => {
      const list = granted.filter((one) => one.role === role).map(({ signature }) => signature);
      const [first = '', ...others] = list;
      return {
        level: 'error',
        what: `${role} may call ${first}${others.length > 0 ? ` and ${others.length} more functions of the outbox` : ''}`,
        fix: `REVOKE ALL ON FUNCTION ${list.join(', ')} FROM ${role};`,
      };
    });
  },
});
