import { describe, expect, it } from '@jest/globals';
import { ActivityCounter } from '../../src/relay/activity-counter.js';

describe('the activity counter', () => {
  it('counts what becomes of events by type, and begins anew when it is read', () => {
    const counter = new ActivityCounter();
    for (const outcome of ['completed', 'completed', 'retry', 'failed'] as const)
      counter.count('a', outcome);
    counter.count('b', 'completed');
    counter.count('a', 'completed');
    expect(counter.take()).toEqual([
      { eventType: 'a', delivered: 3, retried: 1, failed: 1 },
      { eventType: 'b', delivered: 1, retried: 0, failed: 0 },
    ]);
    expect(counter.take()).toEqual([]);
    counter.count('a', 'completed');
    expect(counter.take()).toEqual([{ eventType: 'a', delivered: 1, retried: 0, failed: 0 }]);
  });

  it('does not count what was given back without an attempt', () => {
    const counter = new ActivityCounter();
    counter.count('a', 'released');
    counter.count('a', 'unheard');
    expect(counter.take()).toEqual([]);
  });

  it('puts types beyond a thousand together, and counts every event', () => {
    const counter = new ActivityCounter();
    for (let type = 0; type < 1_500; type++) counter.count(`type-${type}`, 'completed');
    const counts = counter.take();
    expect(counts).toHaveLength(1_001);
    expect(counts.at(-1)).toEqual({ eventType: '(other)', delivered: 500, retried: 0, failed: 0 });
  });
});
