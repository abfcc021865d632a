import { databaseCheck, type Complaint } from '../check.js';
import { resetSetting } from '../patient.js';

export const durability = databaseCheck({
  name: 'durability',
  group: 'server',
  looksFor: 'fsync, full_page_writes or synchronous_commit switched off',
  why: 'an event that was committed may be gone, or the whole database unreadable, after a crash of the machine',
  needs: 'server',
  async examine(database) {
    const settings = await database.settings(['fsync', 'full_page_writes', 'synchronous_commit']);
    return Object.entries(settings).flatMap(([name, setting]): Complaint[] =>
      setting.setting === 'off'
        ? [
            {
              level: name === 'synchronous_commit' ? 'warning' : 'error',
              what: `${name} is off`,
              fix: resetSetting(name, 'on', setting),
            },
          ]
        : [],
    );
  },
});
