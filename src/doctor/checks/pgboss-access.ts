import { CannotLook, databaseCheck, type Complaint } from '../check.js';

export const pgbossAccess = databaseCheck({
  name: 'pgboss-access',
  group: 'access',
  looksFor: 'a schema of pg-boss that PUBLIC, anon or authenticated can reach',
  why: 'whoever can write there can stop the relay’s clock, or read the jobs of the application',
  needs: 'server',
  async examine(database, { bossSchema }) {
    if (bossSchema === undefined)
      throw new CannotLook('pg-boss is the application’s own, or there is none');
    const open = await database.rows<{ role: string }>(
      `WITH stranger AS (
         SELECT oid, rolname::text AS name FROM pg_roles WHERE rolname IN ('anon', 'authenticated')
         UNION ALL SELECT 0::oid, 'PUBLIC'
       )
       SELECT stranger.name AS role
       FROM stranger
       JOIN pg_namespace AS namespace ON namespace.nspname = $1
       WHERE CASE WHEN stranger.oid = 0
               THEN EXISTS (SELECT FROM aclexplode(namespace.nspacl) AS access
                            WHERE access.grantee = 0 AND access.privilege_type = 'USAGE')
               ELSE has_schema_privilege(stranger.oid, namespace.oid, 'USAGE')
             END`,
      [bossSchema],
    );
    return open.map(({ role }): Complaint => ({
      level: 'error',
      what: `${role} has USAGE of the schema ${bossSchema}`,
      fix: `REVOKE ALL ON SCHEMA "${bossSchema}" FROM ${role}; REVOKE ALL ON ALL TABLES IN SCHEMA "${bossSchema}" FROM ${role};`,
    }));
  },
});
