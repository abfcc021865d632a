import type { Check } from '../check.js';
import { command, several } from '../patient.js';

const OVERDUE_MS = 300_000;

export const overdue: Check = {
  name: 'overdue',
  group: 'relays',
  looksFor: 'events that have been due for more than five minutes',
  why: 'a relay claims them within 15 s: there is none, it cannot keep up, or it cannot reach the database',
  needs: 'store',
  async examine(patient) {
    const { due, oldestDueAgeMs } = await patient.store.stats();
    if (oldestDueAgeMs === null || oldestDueAgeMs < OVERDUE_MS) return [];
    return [
      {
        level: 'error',
        what: `${several(due, 'event')} due, the oldest for ${Math.round(oldestDueAgeMs / 60_000)} minutes`,
        fix: `start a relaying process (relay must not be false), or give it more relay.concurrency; then: ${command(patient, 'status')}`,
      },
    ];
  },
};
