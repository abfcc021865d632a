import type { Check, Complaint } from '../check.js';
import { aliveRelays, several, type Patient } from '../patient.js';

const TYPES = 20;

export const unheard: Check = {
  name: 'unheard',
  group: 'events',
  looksFor: 'event types that wait because nobody listens to them',
  why: 'after a day (relay.unheardGraceMs) they become dead letters; a listener was renamed, or its module is not imported',
  needs: 'store',
  async examine(patient) {
    const { unheard: waiting } = await patient.store.stats();
    const types = new Map(Object.entries(waiting));
    for (const { type, total } of await withoutListener(patient)) types.set(type, total);
    return [...types].map(([type, total]): Complaint => ({
      level: 'warning',
      what: `${several(total, 'event')} of the type ${JSON.stringify(type)} waiting, and no process that relays listens to it`,
      fix: `@OnEvent(${JSON.stringify(type)}) in a provider of a process that relays`,
    }));
  },
};

/** Due for a minute, and no relay that is alive has a listener for it. */
async function withoutListener(patient: Patient): Promise<{ type: string; total: number }[]> {
  const relays = (await aliveRelays(patient)) ?? [];
  if (relays.length === 0 || patient.database === undefined) return [];
  const patterns = relays.flatMap(({ listeners }) => listeners.map(({ event }) => event));
  const due = await patient.database.rows<{ type: string; total: number }>(
    `SELECT event_type AS type, count(*) AS total FROM ${patient.names.events}
     WHERE status = 'PENDING' AND scheduled_at < now() - interval '1 minute'
     GROUP BY event_type ORDER BY count(*) DESC, event_type LIMIT ${TYPES}`,
  );
  return due.filter(({ type }) => !patterns.some((pattern) => mayMatch(pattern, type)));
}

/** Delimiters are the application's affair: a pattern with a wildcard may mean anything. */
function mayMatch(pattern: string, type: string): boolean {
  return pattern === type || pattern.includes('*');
}
