import { databaseCheck, type Complaint } from '../check.js';

interface Session {
  readonly pid: number;
  readonly application: string;
  readonly state: string;
  readonly age_s: number;
  readonly behind: number | null;
}

export const longTransactions = databaseCheck({
  name: 'long-transactions',
  group: 'transactions',
  looksFor: 'transactions that have been open for long, and the snapshot they hold',
  why: 'no vacuum clears away what they could still see: claims walk past the dead row versions of every event since',
  needs: 'server',
  async examine(database, { longTransactionMs }, remark) {
    const [rights] = await database.rows<{ all: boolean }>(
      `SELECT pg_has_role('pg_read_all_stats', 'USAGE') AS all`,
    );
    if (!rights?.all) remark('saw only the sessions of its own role (needs pg_read_all_stats)');
    // The statement is not shown: it may hold anything.
    const sessions = await database.rows<Session>(
      `SELECT pid, application_name AS application, state, age(backend_xmin) AS behind,
              extract(epoch FROM clock_timestamp() - xact_start)::integer AS age_s
       FROM pg_stat_activity
       WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
         AND xact_start < clock_timestamp() - $1::float8 * interval '1 millisecond'
       ORDER BY xact_start
       LIMIT 10`,
      [longTransactionMs],
    );
    return sessions.map(({ pid, application, state, age_s: age, behind }): Complaint => {
      const snapshot = behind === null ? '' : `, its snapshot ${behind} transactions behind`;
      return {
        level: 'warning',
        what: `the session ${pid} (${application === '' ? 'without a name' : application}, ${state}) has a transaction open for ${age} s${snapshot}`,
        fix: `SELECT pg_terminate_backend(${pid});  -- and against the next: ALTER DATABASE … SET idle_in_transaction_session_timeout = '5min';`,
      };
    });
  },
});
