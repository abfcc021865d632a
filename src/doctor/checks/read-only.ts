import { databaseCheck } from '../check.js';
import { resetSetting } from '../patient.js';

export const readOnly = databaseCheck({
  name: 'read-only',
  group: 'server',
  looksFor: 'a standby, or transactions that are read-only by default',
  why: 'nothing can be stored, claimed or settled',
  needs: 'server',
  async examine(database) {
    const [server] = await database.rows<{ standby: boolean }>(
      'SELECT pg_is_in_recovery() AS standby',
    );
    if (server?.standby)
      return [
        {
          level: 'error',
          what: 'the connection leads to a standby',
          fix: 'connect to the primary (in a URL with several hosts: target_session_attrs=read-write)',
        },
      ];
    const name = 'default_transaction_read_only';
    const setting = (await database.settings([name]))[name];
    if (setting?.setting !== 'on') return [];
    const fix = `SET ${name} = off; ${resetSetting(name, 'off', setting)}`;
    return [{ level: 'error', what: `${name} is on`, fix }];
  },
});
