import type { KnownListener } from '../store/activity-store.js';

/** How a listener stands to an event. */
export interface ListenerState {
  readonly name: string;
  /** `failed`: its name stands in the last error. `open`: neither. */
  readonly state: 'succeeded' | 'failed' | 'open';
}

/** @param known listeners of the relays that are there, and of this process */
export function listenerStates(
  event: {
    readonly eventType: string;
    readonly acknowledgedBy: readonly string[];
    readonly lastError: string | null;
    readonly status: string;
  },
  known: readonly KnownListener[],
): ListenerState[] {
  const names = new Set(event.acknowledgedBy);
  for (const { name, event: pattern } of known) {
    if (mayListen(pattern, event.eventType)) names.add(name);
  }
  // What has succeeded at the last attempt is not written down: the event is done.
  const isDone = event.status === 'COMPLETED';
  return [...names].toSorted().map((name) => {
    if (isDone || event.acknowledgedBy.includes(name)) return { name, state: 'succeeded' };
    const failed = event.lastError?.includes(`${name}: `) ?? false;
    return { name, state: failed ? 'failed' : 'open' };
  });
}

/** `*` stands for a segment, `**` for any number of them. Only for show: whom an event must reach the registry decides. */
function mayListen(pattern: string, eventType: string): boolean {
  if (pattern === eventType) return true;
  if (!pattern.includes('*')) return false;
  const matches = (left: readonly string[], right: readonly string[]): boolean => {
    const [head, ...rest] = left;
    if (head === undefined) return right.length === 0;
    if (head === '**') {
      return matches(rest, right) || (right.length > 0 && matches(left, right.slice(1)));
    }
    if (right.length === 0) return false;
    return (head === '*' || head === right[0]) && matches(rest, right.slice(1));
  };
  return matches(pattern.split('.'), eventType.split('.'));
}
