import { jest } from '@jest/globals';

/** Moves `Date` to another moment, and Date alone: timers and performance.now() go on as they do. */
export function shiftDate(now: number): void {
  jest.useFakeTimers({
    now,
    doNotFake: [
      'hrtime',
      'nextTick',
      'performance',
      'queueMicrotask',
      'setImmediate',
      'clearImmediate',
      'setInterval',
      'clearInterval',
      'setTimeout',
      'clearTimeout',
    ],
  });
}
