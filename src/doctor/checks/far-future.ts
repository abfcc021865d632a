import { databaseCheck } from '../check.js';
import { several } from '../patient.js';

export const farFuture = databaseCheck({
  name: 'far-future',
  group: 'events',
  looksFor: 'events that are scheduled more than a year ahead',
  why: 'as a rule seconds were taken for milliseconds, or the clock of the process that wrote them was wrong',
  needs: 'tables',
  async examine(database, { names }) {
    const [found] = await database.rows<{ total: number; latest: string | null }>(
      `SELECT count(*) AS total, max(scheduled_at)::text AS latest FROM ${names.events}
       WHERE status = 'PENDING' AND scheduled_at > now() + interval '1 year'`,
    );
    if (found === undefined || found.total === 0) return [];
    return [
      {
        level: 'warning',
        what: `${several(found.total, 'event')} scheduled more than a year ahead, the latest for ${found.latest ?? '?'}`,
        fix: `SELECT id, event_type, scheduled_at FROM ${names.events} WHERE status = 'PENDING' AND scheduled_at > now() + interval '1 year';`,
      },
    ];
  },
});
