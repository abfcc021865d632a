import { expect, it } from '@jest/globals';
import type { OutboxStats } from '../../src/index.js';
import { GaugeReader, type GaugeSource } from '../../src/telemetry/gauge-reader.js';
import { deferred } from '../support/until.js';

const STATS: OutboxStats = {
  due: 1,
  scheduled: 0,
  processing: 0,
  failed: 0,
  completedEstimate: null,
  oldestDueAgeMs: null,
  unheard: {},
};

/** A source that counts how often it is asked. */
function sourceOf(answer: () => Promise<OutboxStats>): GaugeSource & { asked: () => number } {
  let asked = 0;
  return {
    asked: () => asked,
    relaying: () => true,
    events: () => {
      asked++;
      return answer();
    },
    gates: async () => undefined,
  };
}

it('the store is asked once for all who collect within a few seconds', async () => {
  const source = sourceOf(async () => STATS);
  const reader = new GaugeReader(source);
  expect(await Promise.all([reader.read(), reader.read(), reader.read()])).toEqual(
    Array.from({ length: 3 }, () => ({ events: STATS, gates: undefined })),
  );
  await reader.read();
  expect(source.asked()).toBe(1);
  const impatient = new GaugeReader(source, 1_000, 0);
  await impatient.read();
  await impatient.read();
  expect(source.asked()).toBe(3);
});

it('a store that does not answer leaves a gap, and is not asked again before it has', async () => {
  const answer = deferred<OutboxStats>();
  const source = sourceOf(() => answer.promise);
  const reader = new GaugeReader(source, 10, 0);
  expect(await reader.read()).toBeUndefined();
  expect(await reader.read()).toBeUndefined();
  expect(source.asked()).toBe(1);
  answer.resolve(STATS);
  expect(await reader.read()).toEqual({ events: STATS, gates: undefined });
});

it('a store that fails leaves a gap, and is asked again', async () => {
  let down = true;
  const source = sourceOf(async () => {
    if (down) throw new Error('no database');
    return STATS;
  });
  const reader = new GaugeReader(source, 1_000, 0);
  expect(await reader.read()).toBeUndefined();
  down = false;
  expect(await reader.read()).toEqual({ events: STATS, gates: undefined });
});
