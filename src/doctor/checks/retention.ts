import { databaseCheck } from '../check.js';
import { command } from '../patient.js';

const DAY_MS = 86_400_000;
/** Where the retention is not known: the default is 7 days. */
const LONG_MS = 30 * DAY_MS;

export const retention = databaseCheck({
  name: 'retention',
  group: 'events',
  looksFor: 'completed events that were never pruned',
  why: 'the table grows for ever; the relay prunes by itself, once an hour, if it is alive and may DELETE',
  needs: 'tables',
  async examine(database, patient) {
    const { names, completedMs } = patient;
    if (completedMs === false) return [];
    // An hour's pruning may be late by a day.
    const limitMs = completedMs === undefined ? LONG_MS : completedMs + DAY_MS;
    const [oldest] = await database.rows<{ days: number }>(
      `SELECT floor(extract(epoch FROM now() - processed_at) / 86400)::integer AS days
       FROM ${names.events}
       WHERE status = 'COMPLETED' AND processed_at < now() - $1::float8 * interval '1 millisecond'
       ORDER BY processed_at LIMIT 1`,
      [limitMs],
    );
    if (oldest === undefined) return [];
    return [
      {
        level: 'info',
        what: `the oldest completed event is ${oldest.days} days old`,
        fix: command(patient, 'prune --completed-older-than 7d --dry-run'),
      },
    ];
  },
});
