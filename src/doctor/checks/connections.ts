import { databaseCheck } from '../check.js';

const NEARLY_ALL = 0.9;

export const connections = databaseCheck({
  name: 'connections',
  group: 'server',
  looksFor: 'max_connections nearly used up',
  why: 'the next process that starts, or the relay after an outage, is refused: too many clients',
  needs: 'server',
  async examine(database) {
    const [server] = await database.rows<{ used: number; most: number }>(
      `SELECT (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS used,
              current_setting('max_connections')::integer
                - current_setting('superuser_reserved_connections')::integer AS most`,
    );
    const { used = 0, most = 1 } = server ?? {};
    if (used < most * NEARLY_ALL) return [];
    return [
      {
        level: 'warning',
        what: `${used} of ${most} connections are in use`,
        fix: 'SELECT application_name, state, count(*) FROM pg_stat_activity GROUP BY 1, 2 ORDER BY 3 DESC;  -- then smaller pools, or a pooler',
      },
    ];
  },
});
