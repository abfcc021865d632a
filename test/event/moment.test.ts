import { describe, expect, it } from '@jest/globals';
import { assertMoment } from '../../src/event/moment.js';
import { OutboxError } from '../../src/event/outbox-error.js';

describe('a moment', () => {
  it.each(['0001-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z', '9999-12-31T23:59:59.999Z'])(
    'may be %s',
    (text) => {
      expect(() => assertMoment('scheduledAt', new Date(text))).not.toThrow();
    },
  );

  it.each<[string, unknown, string]>([
    ['an invalid Date', new Date('?'), 'must be a valid Date, got an invalid one'],
    ['a text', '2026-01-01', 'must be a valid Date, got "2026-01-01"'],
    ['a number', 0, 'must be a valid Date, got 0'],
    ['null', null, 'must be a valid Date, got null'],
    ['an object', {}, 'must be a valid Date, got an object'],
    ['the year 10000', new Date('+010000-01-01T00:00:00.000Z'), 'must lie in the years 1 to 9999'],
    ['the last of all', new Date(8.64e15), 'got +275760-09-13T00:00:00.000Z'],
    ['the year 0', new Date('0000-12-31T23:59:59.999Z'), 'must lie in the years 1 to 9999'],
    ['the first of all', new Date(-8.64e15), 'got -271821-04-20T00:00:00.000Z'],
  ])('is refused when it is %s', (_, value, message) => {
    expect(() => assertMoment('scheduledAt', value)).toThrow(OutboxError);
    expect(() => assertMoment('scheduledAt', value)).toThrow(/^scheduledAt must /);
    expect(() => assertMoment('scheduledAt', value)).toThrow(message);
  });
});
