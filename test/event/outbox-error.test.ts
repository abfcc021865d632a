import { describe, expect, it } from '@jest/globals';
import {
  invalid,
  isNonRetryable,
  NonRetryableError,
  OutboxError,
} from '../../src/event/outbox-error.js';

describe('an OutboxError', () => {
  it('is an Error with a name, a code to branch on, and the cause', () => {
    const cause = new Error('below');
    const error = new OutboxError('SETUP', 'say this', { cause });
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({ name: 'OutboxError', code: 'SETUP', message: 'say this', cause });
    expect(invalid('x')).toMatchObject({ code: 'INVALID_ARGUMENT', message: 'x' });
  });
});

describe('"never retry this"', () => {
  class NoPhoneNumber extends NonRetryableError {}

  it.each<[string, unknown, boolean]>([
    ['a NonRetryableError', new NonRetryableError('x'), true],
    ['a subclass of it', new NoPhoneNumber('x'), true],
    [
      'one of another copy of this package',
      Object.assign(new Error('x'), { [Symbol.for('nestjs-outbox-relay.non-retryable')]: true }),
      true,
    ],
    ['an ordinary Error', new Error('x'), false],
    [
      'an Error of the same name',
      Object.assign(new Error('x'), { name: 'NonRetryableError' }),
      false,
    ],
    ['null', null, false],
    ['a text', 'NonRetryableError', false],
  ])('%s says it: %p', (_, thrown, says) => {
    expect(isNonRetryable(thrown)).toBe(says);
  });
});
