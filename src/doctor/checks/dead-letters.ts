import { databaseCheck, type Complaint } from '../check.js';
import { command, shellWord } from '../patient.js';

const TYPES = 10;

export const deadLetters = databaseCheck({
  name: 'dead-letters',
  group: 'events',
  looksFor: 'dead letters, by event type',
  why: 'each is something that was promised and did not happen, until somebody redrives or discards it',
  needs: 'tables',
  async examine(database, patient) {
    const types = await database.rows<{ type: string; total: number }>(
      `SELECT event_type AS type, count(*) AS total FROM ${patient.names.events}
       WHERE status = 'FAILED' GROUP BY event_type ORDER BY count(*) DESC, event_type LIMIT ${TYPES}`,
    );
    return types.map(({ type, total }): Complaint => ({
      level: 'warning',
      what: `${total} dead letters of the type ${JSON.stringify(type)}`,
      fix: command(patient, `dead-letters list --type ${shellWord(type)}`),
    }));
  },
});
