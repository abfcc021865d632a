import { CannotLook, type Check } from '../check.js';
import { aliveRelays, several } from '../patient.js';

/** Between two deployments nobody may be there for a moment. */
const WAITING_MS = 60_000;

export const relays: Check = {
  name: 'relays',
  group: 'relays',
  looksFor: 'events that are due while no relay is alive',
  why: 'nobody delivers; a relay reports every 15 s, and none has within a minute',
  needs: 'store',
  async examine(patient) {
    const alive = await aliveRelays(patient);
    if (alive === undefined) throw new CannotLook('the store keeps no reports of relays');
    const { due, oldestDueAgeMs } = await patient.store.stats();
    if (alive.length > 0 || oldestDueAgeMs === null || oldestDueAgeMs < WAITING_MS) return [];
    return [
      {
        level: 'error',
        what: `no relay is alive, with ${several(due, 'event')} due`,
        fix: 'start a process with OutboxModule in it (relay must not be false), and look at its log',
      },
    ];
  },
};
