import { databaseCheck, type Complaint } from '../check.js';
import { resetSetting } from '../patient.js';

const SHORTEST_MS: Readonly<Record<string, number>> = {
  statement_timeout: 5_000,
  lock_timeout: 1_000,
  transaction_timeout: 5_000,
};

export const timeouts = databaseCheck({
  name: 'timeouts',
  group: 'server',
  looksFor: 'a statement_timeout, lock_timeout or transaction_timeout too short to work under',
  why: 'a claim or a settlement that is broken off leaves its events to the reaper, which counts a failed attempt of each',
  needs: 'server',
  async examine(database) {
    const settings = await database.settings(Object.keys(SHORTEST_MS));
    return Object.entries(settings).flatMap(([name, setting]): Complaint[] => {
      const ms = Number(setting.setting);
      const shortest = SHORTEST_MS[name] ?? 0;
      if (ms === 0 || ms >= shortest) return [];
      return [
        {
          level: 'warning',
          what: `${name} is ${ms} ms; the outbox wants ${shortest} ms or more (0: none)`,
          fix: resetSetting(name, `'${shortest / 1_000}s'`, setting),
        },
      ];
    });
  },
});
