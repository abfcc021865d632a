import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  assertEventType,
  eventTypeProblem,
  OUTBOX_DEAD_LETTER,
} from '../../src/event/event-type.js';
import { OutboxError } from '../../src/event/outbox-error.js';

describe('an event type', () => {
  it.each([
    ['one character', 'a'],
    ['the usual', 'quote_request.created'],
    ['with spaces inside', 'a b'],
    ['in Korean', '견적.요청'],
    ['255 characters', 'x'.repeat(255)],
    ['255 characters of two code units', '😀'.repeat(255)],
    ['of digits', '1'],
    ['that only contains a reserved word', 'errors.error2'],
    ['that begins as a reserved one', 'error.created'],
    ['that looks like an inherited name', 'constructors.toString2'],
    ['with quotes', `it's "quoted"; DROP TABLE victim; --`],
  ])('may be %s', (_, eventType) => {
    expect(eventTypeProblem(eventType)).toBeUndefined();
    expect(() => assertEventType(eventType)).not.toThrow();
  });

  it.each<[string, unknown, RegExp]>([
    ['empty', '', /must not be empty, got ""/],
    ['blank', ' \t\n', /must not be empty/],
    ['256 characters', 'x'.repeat(256), /at most 255 characters, got 256: "x{60}…"/],
    ['256 characters of two code units', '😀'.repeat(256), /at most 255 characters, got 256/],
    ['with NUL', 'a\0b', /must not contain NUL/],
    ['with half an emoji', 'a\ud83d', /must not contain NUL or a lone surrogate/],
    ['error', 'error', /"error" has a meaning of its own/],
    ['newListener', 'newListener', /"newListener" has a meaning of its own/],
    ['removeListener', 'removeListener', /has a meaning of its own/],
    ['the dead letter notice', OUTBOX_DEAD_LETTER, /has a meaning of its own/],
    ['a number', 7, /must be a string such as .*, got number/],
    ['a symbol', Symbol('s'), /must be a string such as .*, got symbol/],
    ['null', null, /must be a string such as .*, got null/],
    ['undefined', undefined, /must be a string such as .*, got undefined/],
    ['a list', ['a', 'b'], /must be a string such as .*, got object/],
  ])('is refused when it is %s', (_, eventType, message) => {
    expect(eventTypeProblem(eventType)).toMatch(message);
    expect(() => assertEventType(eventType)).toThrow(OutboxError);
    expect(() => assertEventType(eventType)).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT' }),
    );
  });

  it.each(Object.getOwnPropertyNames(Object.prototype))(
    'is refused when it is, or has a segment, %s, which every object inherits',
    (name) => {
      expect(eventTypeProblem(name)).toContain(`(${name})`);
      expect(eventTypeProblem(`a.${name}`)).toContain(`(${name})`);
      expect(eventTypeProblem(`${name}.created`)).toContain(`(${name})`);
    },
  );

  it('is judged by the same length as PostgreSQL counts, and never crashes the judge', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (text) => {
        const problem = eventTypeProblem(text);
        if ([...text].length > 255) expect(problem).toMatch(/at most 255|must not be empty/);
        expect(problem === undefined || problem.startsWith('eventType ')).toBe(true);
      }),
    );
  });
});
