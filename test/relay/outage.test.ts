import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Outage } from '../../src/relay/outage.js';
import { RecordingLogger } from '../support/logger.js';

describe('an outage', () => {
  const error = new Error('no connection');
  let log: RecordingLogger;
  let outage: Outage;

  beforeEach(() => {
    jest.useFakeTimers({ now: 0 });
    log = new RecordingLogger();
    outage = new Outage(log);
  });

  afterEach(() => {
    jest.useRealTimers();
  });

  it('is waited for ever longer, up to a few seconds, so that work goes on soon after it', () => {
    const waits = Array.from({ length: 12 }, () => outage.waitMs(error));
    expect(waits[0]).toBeLessThanOrEqual(100);
    expect(waits).toEqual(waits.toSorted((a, b) => a - b));
    expect(waits.at(-1)).toBe(5_000);
    outage.over();
    expect(outage.waitMs(error)).toBe(waits[0]);
  });

  it('is said at once, then once a minute, and that it is over once', () => {
    for (let second = 0; second < 130; second++) {
      outage.waitMs(error);
      jest.advanceTimersByTime(1_000);
    }
    expect(log.messages('error')).toHaveLength(3);
    outage.over();
    outage.over();
    expect(log.messages('log')).toEqual(["the outbox's store answers again"]);
  });
});
