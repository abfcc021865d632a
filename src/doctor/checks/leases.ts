import { databaseCheck, type Complaint } from '../check.js';
import { several } from '../patient.js';

export const leases = databaseCheck({
  name: 'leases',
  group: 'events',
  looksFor: 'leases that ran out long ago, or never will',
  why: 'the reaper takes over what a dead process held; nobody reaps, or the row can never be reaped',
  needs: 'tables',
  async examine(database, { names }) {
    // relay.leaseMs is a day at most.
    const [found] = await database.rows<{ expired: number; endless: number }>(
      `SELECT count(*) FILTER (WHERE leased_until < now() - interval '5 minutes') AS expired,
              count(*) FILTER (WHERE leased_until > now() + interval '2 days') AS endless
       FROM ${names.events} WHERE status = 'PROCESSING'`,
    );
    const { expired = 0, endless = 0 } = found ?? {};
    const complaints: Complaint[] = [];
    if (expired > 0)
      complaints.push({
        level: 'error',
        what: `${several(expired, 'event')} held under leases that ran out more than five minutes ago`,
        fix: 'start a relaying process (relay must not be false): its first tick reaps them',
      });
    if (endless > 0)
      complaints.push({
        level: 'error',
        what: `${several(endless, 'event')} held under leases that do not run out within two days`,
        fix: `UPDATE ${names.events} SET leased_until = now() WHERE status = 'PROCESSING' AND leased_until > now() + interval '2 days';`,
      });
    return complaints;
  },
});
