import { describe, expect, it } from '@jest/globals';
import { assertKnownKeys } from '../../src/event/known-keys.js';
import { OutboxError } from '../../src/event/outbox-error.js';

const KNOWN = ['maxRetries', 'backoff', 'jitter'];

describe('keys that an object may have', () => {
  it.each([{}, { jitter: 1 }, { maxRetries: undefined, backoff: 1, jitter: 1 }])(
    'are those that are known: %j',
    (given) => {
      expect(() => assertKnownKeys('', given, KNOWN)).not.toThrow();
    },
  );

  it.each([
    ['', { maxRetry: 1 }, 'unknown option maxRetry: did you mean maxRetries?'],
    ['retry.', { jitter: 1, Backof: 1 }, 'unknown option retry.Backof: did you mean backoff?'],
    ['', { MAXRETRIES: 1 }, 'unknown option MAXRETRIES: did you mean maxRetries?'],
    ['', { attempts: 1 }, 'unknown option attempts: known are maxRetries, backoff, jitter'],
    ['', { x: 1 }, 'unknown option x: known are maxRetries, backoff, jitter'],
    ['', JSON.parse('{"__proto__":1}') as object, 'unknown option __proto__: known are'],
  ])('and no others, with what was probably meant: %s%j', (path, given, message) => {
    expect(() => assertKnownKeys(path, given, KNOWN)).toThrow(OutboxError);
    expect(() => assertKnownKeys(path, given, KNOWN)).toThrow(message);
  });
});
