import { databaseCheck } from '../check.js';
import { resetSetting } from '../patient.js';

export const isolation = databaseCheck({
  name: 'isolation',
  group: 'server',
  looksFor: 'another default isolation level than READ COMMITTED',
  why: 'two relays that claim at the same time then fail with serialization errors instead of passing each other',
  needs: 'server',
  async examine(database) {
    const name = 'default_transaction_isolation';
    const setting = (await database.settings([name]))[name];
    if (setting === undefined || setting.setting === 'read committed') return [];
    return [
      {
        level: 'warning',
        what: `${name} is ${setting.setting}`,
        fix: resetSetting(name, `'read committed'`, setting),
      },
    ];
  },
});
