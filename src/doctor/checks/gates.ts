import { CannotLook, type Check, type Complaint } from '../check.js';
import { command, several, shellWord } from '../patient.js';

export const gates: Check = {
  name: 'gates',
  group: 'events',
  looksFor: 'gates that are closed or failing',
  why: 'the work behind them has not been done, and behind a closed one it is not even tried',
  needs: 'store',
  async examine(patient) {
    const { sentinels } = patient.store;
    if (sentinels === undefined) throw new CannotLook('the store has no sentinels');
    const failing = await sentinels.list({ failing: true, limit: 100 });
    return failing.map(({ key, version, closed, failures, lastError }): Complaint => {
      const name = `${key} (version ${version})`;
      const error = (lastError ?? 'without a reason').slice(0, 200);
      return {
        level: 'warning',
        what: `the gate ${name} ${closed ? 'is closed' : 'is failing'} after ${several(failures, 'failure')}: ${error}`,
        fix: closed
          ? `mend what failed, then: ${command(patient, `gates reopen ${shellWord(key)} --version ${shellWord(version)}`)}`
          : command(patient, `gates list --key ${shellWord(key)}`),
      };
    });
  },
};
