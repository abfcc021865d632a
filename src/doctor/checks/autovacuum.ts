import { databaseCheck, type Complaint } from '../check.js';
import { resetSetting } from '../patient.js';

export const autovacuum = databaseCheck({
  name: 'autovacuum',
  group: 'server',
  looksFor: 'autovacuum or track_counts switched off, for the server or for the table',
  why: 'each event leaves dead row versions; nobody clears them away, and claims walk past more of them every day',
  needs: 'tables',
  async examine(database, { names }) {
    const settings = await database.settings(['autovacuum', 'track_counts']);
    const [table] = await database.rows<{ off: boolean }>(
      `SELECT EXISTS (SELECT FROM pg_options_to_table(reloptions)
                      WHERE option_name = 'autovacuum_enabled' AND NOT option_value::boolean) AS off
       FROM pg_class WHERE oid = $1::regclass`,
      [names.events],
    );
    const complaints = Object.entries(settings).flatMap(([name, setting]): Complaint[] =>
      setting.setting === 'off'
        ? [{ level: 'error', what: `${name} is off`, fix: resetSetting(name, 'on', setting) }]
        : [],
    );
    if (table?.off)
      complaints.push({
        level: 'error',
        what: `autovacuum is off for ${names.events}`,
        fix: `ALTER TABLE ${names.events} RESET (autovacuum_enabled);`,
      });
    return complaints;
  },
});
