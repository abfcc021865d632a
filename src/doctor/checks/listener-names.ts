import type { Check, Complaint } from '../check.js';
import { aliveRelays } from '../patient.js';

export const listenerNames: Check = {
  name: 'listener-names',
  group: 'relays',
  looksFor: 'listeners of one event that share a name',
  why: 'a listener is known as ClassName.method: the two are called again together until both succeed in one attempt, and an error does not say whose it is',
  needs: 'store',
  async examine(patient) {
    const reports = (await aliveRelays(patient)) ?? [];
    // A process knows its own listeners; on the command line there are only the relays' reports.
    const lists = [patient.listeners ?? [], ...reports.map(({ listeners }) => listeners)];
    const shared = new Map<string, { name: string; event: string; times: number }>();
    for (const list of lists) {
      for (const { name, event } of list) {
        const times = list.filter((one) => one.name === name && one.event === event).length;
        if (times > 1) shared.set(`${name}\0${event}`, { name, event, times });
      }
    }
    return [...shared.values()].map(({ name, event, times }): Complaint => ({
      level: 'warning',
      what: `${times} listeners of ${JSON.stringify(event)} share the name ${name}`,
      fix: 'rename one of the classes; if it is one class provided by two modules, provide it in one and import that',
    }));
  },
};
