import { databaseCheck, type Complaint } from '../check.js';

export const preparedTransactions = databaseCheck({
  name: 'prepared-transactions',
  group: 'transactions',
  looksFor: 'prepared transactions (two-phase commit) that nobody has ended',
  why: 'they outlive their session and a restart, and hold locks and the oldest snapshot until somebody ends them',
  needs: 'server',
  async examine(database, { longTransactionMs }) {
    const prepared = await database.rows<{ gid: string; literal: string; age_s: number }>(
      `SELECT gid, quote_literal(gid) AS literal,
              extract(epoch FROM clock_timestamp() - prepared)::integer AS age_s
       FROM pg_prepared_xacts
       WHERE database = current_database()
         AND prepared < clock_timestamp() - $1::float8 * interval '1 millisecond'
       ORDER BY prepared LIMIT 10`,
      [longTransactionMs],
    );
    return prepared.map(({ gid, literal, age_s: age }): Complaint => ({
      level: 'warning',
      what: `the prepared transaction ${gid} has been waiting for its end for ${age} s`,
      fix: `ROLLBACK PREPARED ${literal};  -- or COMMIT PREPARED, as its coordinator says`,
    }));
  },
});
