import { databaseCheck } from '../check.js';

const ALLOWED_MS = 1_000;
const ROUNDS = 3;

export const clock = databaseCheck({
  name: 'clock',
  group: 'server',
  looksFor: 'a difference between this machine’s clock and the database’s',
  why: 'the database decides what is due; a scheduledAt that was reckoned on this machine is early or late by as much',
  needs: 'server',
  async examine(database) {
    let nearest = { differenceMs: 0, halfTripMs: Infinity };
    for (let round = 0; round < ROUNDS; round++) {
      const before = Date.now();
      const startedAt = performance.now();
      const [answer] = await database.rows<{ now: number }>(
        'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS now',
      );
      const halfTripMs = (performance.now() - startedAt) / 2;
      // The quickest answer says most.
      if (halfTripMs < nearest.halfTripMs)
        nearest = { differenceMs: before + halfTripMs - (answer?.now ?? 0), halfTripMs };
    }
    const { differenceMs, halfTripMs } = nearest;
    if (Math.abs(differenceMs) <= ALLOWED_MS + halfTripMs) return [];
    const seconds = (Math.abs(differenceMs) / 1_000).toFixed(1);
    return [
      {
        level: 'warning',
        what: `this machine’s clock is ${seconds} s ${differenceMs > 0 ? 'ahead of' : 'behind'} the database’s`,
        fix: 'timedatectl set-ntp true  -- on the machine that is wrong; in code, prefer delayMs to scheduledAt',
      },
    ];
  },
});
