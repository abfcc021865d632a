import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { inspect } from 'node:util';
import { createContext, runInContext } from 'node:vm';
import { errorText, MAX_ERROR_TEXT } from '../../src/event/error-text.js';

class ValidationError extends Error {
  override readonly name = 'ValidationError';
}

describe('whatever was thrown becomes readable text', () => {
  it.each<[string, unknown, string]>([
    ['an Error', new Error('no stock'), 'no stock'],
    ['an Error of a class', new TypeError('no stock'), 'TypeError: no stock'],
    ['an Error with a name', new ValidationError('no stock'), 'ValidationError: no stock'],
    ['an Error without a message', new TypeError(), 'TypeError'],
    ['a plain Error without a message', new Error(), 'an error without a message was thrown'],
    ['an Error with a blank message', new Error(' \n'), 'an error without a message was thrown'],
    ['an Error with a code', Object.assign(new Error('gone'), { code: '57P01' }), 'gone (57P01)'],
    [
      'an Error that names its code',
      Object.assign(new Error('ENOENT: x'), { code: 'ENOENT' }),
      'ENOENT: x',
    ],
    ['an Error with only a code', Object.assign(new Error(), { code: 'X' }), '(X)'],
    [
      'an Error from elsewhere',
      runInContext('new RangeError("far")', createContext()),
      'RangeError: far',
    ],
    [
      'what only looks like an Error',
      { name: 'PostgrestError', message: 'denied', code: '42501' },
      'PostgrestError: denied (42501)',
    ],
    [
      'a cause',
      new Error('outer', { cause: new TypeError('inner') }),
      'outer; caused by TypeError: inner',
    ],
    ['a cause that is no Error', new Error('outer', { cause: 'inner' }), 'outer; caused by inner'],
    [
      'a cause that is null',
      new Error('outer', { cause: null }),
      'outer; caused by null was thrown',
    ],
    [
      'an AggregateError',
      new AggregateError([new Error('a'), 'b'], 'both'),
      'AggregateError: both: a; b',
    ],
    ['a text', 'text', 'text'],
    ['an empty text', '', 'an empty string was thrown'],
    ['a blank text', ' ', 'an empty string was thrown'],
    ['null', null, 'null was thrown'],
    ['undefined', undefined, 'undefined was thrown'],
    ['a number', 42, '42 was thrown'],
    ['a BigInt', 42n, '42 was thrown'],
    ['false', false, 'false was thrown'],
    ['an object', { code: 'X' }, '{"code":"X"} was thrown'],
    ['an array', [1, 'a'], '[1,"a"] was thrown'],
    ['an object whose message is no text', { message: { a: 1 } }, '{"message":{"a":1}} was thrown'],
    ['a symbol', Symbol('s'), 'Symbol(s) was thrown'],
    ['NUL', new Error('a\0b'), 'a\uFFFDb'],
    ['half an emoji', new Error('a\ud83d'), 'a\uFFFD'],
  ])('%s', (_, thrown, text) => {
    expect(errorText(thrown)).toBe(text);
  });

  it.each<[string, unknown, RegExp]>([
    ['an object with a BigInt', { id: 10n }, /id.*10n.* was thrown$/],
    ['an object that contains itself', circular(), /status.*503.* was thrown$/s],
    ['an object whose toJSON throws', { status: 503, toJSON: raise }, /503.* was thrown$/s],
    [
      'an object whose toJSON gives nothing',
      { status: 503, toJSON: () => undefined },
      /503.* was/s,
    ],
    [
      'an object that shows itself badly',
      { id: 10n, [inspect.custom]: raise },
      /id.*10n.* was thrown$/,
    ],
    ['a function', function named() {}, /named.* was thrown$/],
    [
      'a message getter that throws',
      {
        get message() {
          return raise();
        },
      },
      /was thrown$/,
    ],
    [
      'a code getter that throws',
      Object.defineProperty(new Error('kept'), 'code', { get: raise }),
      /^kept/,
    ],
    [
      'a cause getter that throws',
      Object.defineProperty(new Error('kept'), 'cause', { get: raise }),
      /^kept/,
    ],
    ['a proxy whose every trap throws', hostileProxy(), /was thrown$/],
    ['a revoked proxy', revokedProxy(), /was thrown$/],
    [
      'errors that throw',
      Object.assign(new Error('kept'), { errors: [hostileProxy()] }),
      /^kept: .*was thrown$/,
    ],
  ])('%s, as well as can be', (_, thrown, text) => {
    expect(errorText(thrown)).toMatch(text);
  });
});

describe('it always ends, and stays short', () => {
  it('a cause that is the error itself, or one further up, is told once', () => {
    const itself = new Error('itself');
    itself.cause = itself;
    expect(errorText(itself)).toBe('itself');

    const a = new Error('a');
    a.cause = new Error('b', { cause: a });
    expect(errorText(a)).toBe('a; caused by b');
  });

  it('an AggregateError that contains itself, many times over, is told once', () => {
    const aggregate = new AggregateError([], 'all');
    aggregate.errors.push(aggregate, aggregate, new Error('one'), aggregate, aggregate);
    expect(errorText(aggregate)).toBe('AggregateError: all: one');
  });

  it('errors of errors of errors do not multiply', () => {
    let tree = new Error('leaf');
    for (let depth = 0; depth < 40; depth++) {
      const branch = tree;
      tree = new AggregateError([branch, branch, branch, branch, branch], `${depth}`);
    }
    const startedAt = performance.now();
    expect(errorText(tree)).toMatch(/^AggregateError: 39: /);
    expect(performance.now() - startedAt).toBeLessThan(1_000);
  });

  it('a long chain of causes keeps its head', () => {
    let chain: object = { message: 'first' };
    for (let link = 0; link < 100_000; link++) chain = { message: `link ${link}`, cause: chain };
    expect(errorText(chain)).toMatch(/^link 99999; caused by link 99998; /);
    expect(errorText(chain).split('caused by')).toHaveLength(20);
  });

  it.each<[string, (huge: string) => unknown]>([
    ['a huge text', (huge) => huge],
    ['a huge message', (huge) => new Error(huge)],
    ['a huge name', (huge) => Object.assign(new Error('m'), { name: huge })],
    ['a huge code', (huge) => Object.assign(new Error('m'), { code: huge })],
    ['a huge object', (huge) => ({ huge })],
    ['a huge chain', (huge) => new Error(huge, { cause: new Error(huge, { cause: huge }) })],
    ['huge parts', (huge) => new AggregateError([huge, huge, huge, huge, huge], huge)],
    ['a huge symbol', (huge) => Symbol(huge)],
  ])('%s is cut, and says so', (_, make) => {
    const text = errorText(make('x'.repeat(5_000_000)));
    expect(text).toHaveLength(MAX_ERROR_TEXT);
    expect(text).toMatch(/x…/);
  });

  it('is not cut in the middle of a character', () => {
    const text = errorText(`x${'😀'.repeat(2_000)}`);
    expect(text.isWellFormed()).toBe(true);
    expect(text).toHaveLength(MAX_ERROR_TEXT);
  });

  it('at its full length is left as it is', () => {
    expect(errorText('x'.repeat(MAX_ERROR_TEXT))).toBe('x'.repeat(MAX_ERROR_TEXT));
  });

  it('whatever it is, PostgreSQL can store it and there is something to read', () => {
    fc.assert(
      fc.property(fc.anything({ withBigInt: true, withDate: true, withMap: true }), (thrown) => {
        const text = errorText(thrown);
        expect(text.trim()).not.toBe('');
        expect(text.includes('\0')).toBe(false);
        expect(text.isWellFormed()).toBe(true);
        expect(text.length).toBeLessThanOrEqual(MAX_ERROR_TEXT);
      }),
    );
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (a, b) => {
        const text = errorText(Object.assign(new Error(a), { code: b }));
        expect(text.trim()).not.toBe('');
        expect(text.includes('\0')).toBe(false);
      }),
    );
  });
});

function circular(): object {
  const response: Record<string, unknown> = { status: 503 };
  response['request'] = { response };
  return response;
}

function hostileProxy(): object {
  const traps = Object.fromEntries(
    ['get', 'has', 'ownKeys', 'getPrototypeOf', 'getOwnPropertyDescriptor'].map((trap) => [
      trap,
      raise,
    ]),
  );
  return new Proxy({}, traps);
}

function revokedProxy(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

function raise(): never {
  throw new Error('hostile');
}
