import type { Check, Complaint } from '../check.js';

export const unheard: Check = {
  name: 'unheard',
  group: 'events',
  looksFor: 'event types that wait because nobody listens to them',
  why: 'after a day (relay.unheardGraceMs) they become dead letters; a listener was renamed, or its module is not imported',
  needs: 'store',
  async examine({ store }) {
    const { unheard: waiting } = await store.stats();
    return Object.entries(waiting).map(
      ([type, total]): Complaint => ({
        level: 'warning',
        what: `${total} events of the type ${JSON.stringify(type)} wait: no listener in the processes that relay`,
        fix: `@OnEvent(${JSON.stringify(type)}) in a provider of a process that relays`,
      }),
    );
  },
};
