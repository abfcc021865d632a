import { databaseCheck } from '../check.js';

const MANY = 10_000;
const PART = 0.2;

export const deadTuples = databaseCheck({
  name: 'dead-tuples',
  group: 'transactions',
  looksFor: 'dead row versions that no vacuum has cleared away',
  why: 'claims and counts walk past them; the table and its indexes grow and do not shrink again',
  needs: 'tables',
  async examine(database, { names }) {
    const [table] = await database.rows<{ live: number; dead: number; vacuumed: string | null }>(
      `SELECT n_live_tup AS live, n_dead_tup AS dead,
              to_char(greatest(last_vacuum, last_autovacuum) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI "UTC"') AS vacuumed
       FROM pg_stat_all_tables WHERE relid = $1::regclass`,
      [names.events],
    );
    const { live = 0, dead = 0, vacuumed = null } = table ?? {};
    if (dead < MANY || dead < (live + dead) * PART) return [];
    return [
      {
        level: 'warning',
        what: `${names.events} has ${dead} dead row versions beside ${live} live ones, last vacuumed: ${vacuumed ?? 'never'}`,
        fix: `VACUUM (ANALYZE, VERBOSE) ${names.events};  -- if they stay: long-transactions, prepared-transactions, replication-slots`,
      },
    ];
  },
});
