import type { Check, Complaint } from '../check.js';
import { command, several, shellWord, type Patient } from '../patient.js';

const TYPES = 10;

export const deadLetters: Check = {
  name: 'dead-letters',
  group: 'events',
  looksFor: 'dead letters, by event type',
  why: 'each is something that was promised and did not happen, until somebody redrives or discards it',
  needs: 'store',
  async examine(patient) {
    const types = await byType(patient);
    return types.map(({ type, total }): Complaint => {
      const [of, choice] =
        type === null
          ? ['', '']
          : [` of the type ${JSON.stringify(type)}`, ` --type ${shellWord(type)}`];
      return {
        level: 'warning',
        what: `${several(total, 'dead letter')}${of}`,
        fix: command(patient, `dead-letters list${choice}`),
      };
    });
  },
};

/** @returns `null` for the type where only the store can be asked, which counts them together */
async function byType({
  database,
  store,
  names,
}: Patient): Promise<{ type: string | null; total: number }[]> {
  if (database === undefined) {
    const total = await store.countDeadLetters({});
    return total === 0 ? [] : [{ type: null, total }];
  }
  return database.rows(
    `SELECT event_type AS type, count(*) AS total FROM ${names.events}
     WHERE status = 'FAILED' GROUP BY event_type ORDER BY count(*) DESC, event_type LIMIT ${TYPES}`,
  );
}
