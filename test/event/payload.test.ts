import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createContext, runInContext } from 'node:vm';
import { OutboxError } from '../../src/event/outbox-error.js';
import { assertNoReservedKeys, assertPayloadSize, toStorable } from '../../src/event/payload.js';

function storable(payload: unknown): unknown {
  return toStorable('payload', payload);
}

function refusal(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(OutboxError);
    expect(error).toHaveProperty('code', 'INVALID_ARGUMENT');
    return (error as Error).message;
  }
  throw new Error('it was not refused');
}

function nested(depth: number): unknown {
  let value: unknown = {};
  for (let level = 1; level < depth; level++) value = { a: value };
  return value;
}

function circle(): object {
  const parent: Record<string, unknown> = { list: [] };
  (parent['list'] as unknown[]).push({ parent });
  return parent;
}

describe('what cannot be stored is refused, with the path to it', () => {
  it.each<[string, unknown, RegExp]>([
    ['an array at the top', [1, 2], /^payload must be a plain JSON object, got an Array/],
    ['an empty array at the top', [], /^payload must be a plain JSON object, got an Array/],
    ['a string at the top', '{"a":1}', /^payload must be a plain JSON object, got a string/],
    ['a number at the top', 10.5, /^payload must be a plain JSON object, got a number/],
    ['a boolean at the top', true, /^payload must be a plain JSON object, got a boolean/],
    ['null at the top', null, /^payload must be a plain JSON object, got null/],
    ['undefined at the top', undefined, /^payload is undefined/],
    ['a Date at the top', new Date(0), /^payload must be a plain JSON object, got a Date/],
    ['a Map at the top', new Map(), /^payload is a Map/],
    ['a toJSON that gives no object', { toJSON: () => 1 }, /^payload must be a plain JSON object/],
    ['a BigInt', { a: [0, 10n] }, /^payload\.a\[1\] is a BigInt \(10n\)/],
    ['a function', { a: { b: () => 1 } }, /^payload\.a\.b is a function/],
    ['a class', { a: Map }, /^payload\.a is a function/],
    ['a symbol', { a: Symbol('s') }, /^payload\.a is a symbol/],
    ['a symbol key', { a: { [Symbol('s')]: 1 } }, /^payload\.a has a symbol key \(Symbol\(s\)\)/],
    ['a circle', circle(), /^payload\.list\[0\]\.parent refers back/],
    ['NaN', { a: NaN }, /^payload\.a is NaN/],
    ['Infinity', { a: Infinity }, /^payload\.a is Infinity/],
    ['-Infinity', { a: -Infinity }, /^payload\.a is -Infinity/],
    ['a Map', { a: new Map([[1, 2]]) }, /^payload\.a is a Map/],
    ['a Set', { a: [new Set([1])] }, /^payload\.a\[0\] is a Set/],
    ['a WeakMap', { a: new WeakMap() }, /^payload\.a is a WeakMap/],
    ['a Buffer', { a: Buffer.from('x') }, /^payload\.a is binary data \(Uint8Array\).*base64/],
    ['a typed array', { a: new Float64Array(2) }, /^payload\.a is binary data \(Float64Array\)/],
    ['a DataView', { a: new DataView(new ArrayBuffer(1)) }, /^payload\.a is binary data/],
    ['an ArrayBuffer', { a: new ArrayBuffer(1) }, /^payload\.a is an? ArrayBuffer/],
    ['an invalid Date', { a: new Date('?') }, /^payload\.a is an invalid Date/],
    [
      'an invalid Date from elsewhere',
      { a: runInContext('new Date(NaN)', createContext()) as unknown },
      /^payload\.a is an invalid Date/,
    ],
    ['a RegExp', { a: /x/ }, /^payload\.a is a RegExp/],
    ['an Error', { a: new TypeError('x') }, /^payload\.a is an? Error/],
    ['a promise that nobody awaited', { a: Promise.resolve(1) }, /^payload\.a is a Promise/],
    ['a boxed number', { a: Object(1) as unknown }, /^payload\.a is a Number/],
    ['undefined in an array', { a: [1, undefined] }, /^payload\.a\[1\] is undefined/],
    // oxlint-disable-next-line no-sparse-arrays
    ['a hole in an array', { a: [1, , 3] }, /^payload\.a\[1\] is undefined/],
    [
      'a huge hole',
      { a: Object.assign([], { length: 4_000_000_000 }) },
      /^payload\.a\[0\] is undefined/,
    ],
    ['what is too deep', nested(501), /^payload\.a\.a.*… is nested deeper than 500 levels/],
    ['NUL', { s: 'a\0b' }, /^payload\.s contains NUL/],
    ['NUL in an array', { a: [['\0']] }, /^payload\.a\[0\]\[0\] contains NUL/],
    ['NUL in a key', { a: { 'b\0': 1 } }, /^a key of payload\.a contains NUL/],
    ['half an emoji', { s: '\ud83d' }, /^payload\.s contains a lone surrogate/],
    [
      'the other half in an array',
      { a: ['x\ude00'] },
      /^payload\.a\[0\] contains a lone surrogate/,
    ],
    ['half an emoji in a key', { '\ud83d': 1 }, /^a key of payload contains a lone surrogate/],
    ['a key of an undefined property', { 'a\0': undefined }, /^a key of payload contains NUL/],
    ['NUL that toJSON made', { a: { toJSON: () => '\0' } }, /^payload\.a contains NUL/],
    ['a BigInt that toJSON made', { a: { toJSON: () => ({ b: 1n }) } }, /^payload\.a\.b is a Big/],
  ])('%s', (_, payload, message) => {
    expect(refusal(() => storable(payload))).toMatch(message);
  });

  it.each<[string, unknown, RegExp]>([
    [
      'a getter that throws',
      {
        a: {
          get b() {
            return raise();
          },
        },
      },
      /^payload\.a could not be read: no/,
    ],
    ['a toJSON that throws', { a: { toJSON: raise } }, /^payload\.a could not be read: no/],
    [
      'a proxy that throws',
      { a: new Proxy({}, { ownKeys: raise }) },
      /^payload\.a could not be read: no/,
    ],
    ['a revoked proxy', { a: revokedProxy() }, /^payload\.a could not be read: TypeError/],
  ])('%s, with what it threw as the cause', (_, payload, message) => {
    expect(refusal(() => storable(payload))).toMatch(message);
    expect(() => storable(payload)).toThrow(
      expect.objectContaining({ cause: expect.objectContaining({ message: expect.any(String) }) }),
    );
  });

  it('says the name that the caller gave', () => {
    expect(refusal(() => toStorable('metadata', { a: 1n }))).toMatch(/^metadata\.a is a BigInt/);
  });

  it('the message stays short, however deep the path', () => {
    expect(refusal(() => storable(nested(5_000))).length).toBeLessThan(300);
  });
});

describe('what can be stored becomes exactly what jsonb will hold', () => {
  class Money {
    constructor(
      readonly amount: string,
      readonly currency: string,
    ) {}
    get formatted(): string {
      return `${this.amount} ${this.currency}`;
    }
  }
  class Id {
    constructor(private readonly text: string) {}
    toJSON(key: string): string {
      return `${key}:${this.text}`;
    }
  }
  class Self {
    a = 1;
    toJSON(): this {
      return this;
    }
  }
  class Spread {
    a = 1;
    toJSON = (): object => ({ ...this });
  }

  it.each<[string, unknown, unknown]>([
    ['an empty object', {}, {}],
    [
      'nested values',
      { a: [1, -1.5e-7, 'x', true, null, [], {}, [[]]] },
      { a: [1, -1.5e-7, 'x', true, null, [], {}, [[]]] },
    ],
    ['a Date', { at: new Date(0) }, { at: '1970-01-01T00:00:00.000Z' }],
    ['a Date in an array', { at: [new Date(0)] }, { at: ['1970-01-01T00:00:00.000Z'] }],
    [
      'a toJSON that gives a Date',
      { at: { toJSON: () => new Date(0) } },
      { at: '1970-01-01T00:00:00.000Z' },
    ],
    ['a URL', { at: new URL('https://a.b/') }, { at: 'https://a.b/' }],
    [
      'an instance of a class',
      { price: new Money('1', 'KRW') },
      { price: { amount: '1', currency: 'KRW' } },
    ],
    [
      'a toJSON, told its key',
      { id: new Id('x'), ids: [new Id('y')] },
      { id: 'id:x', ids: ['0:y'] },
    ],
    ['a toJSON at the top', { toJSON: () => ({ a: 1 }) }, { a: 1 }],
    ['a toJSON that gives what has another', { a: { toJSON: () => new Id('x') } }, { a: 'a:x' }],
    ['a toJSON that gives itself', { a: new Self() }, { a: { a: 1 } }],
    ['a toJSON that spreads itself', { a: new Spread() }, { a: { a: 1 } }],
    [
      'an object without a prototype',
      { a: Object.assign(Object.create(null), { b: 1 }) },
      { a: { b: 1 } },
    ],
    ['an undefined property', { a: undefined, b: { c: undefined } }, { b: {} }],
    [
      'a property that is not enumerable',
      { a: Object.defineProperty({}, 'b', { value: 1n }) },
      { a: {} },
    ],
    [
      'strings that look like something else',
      { a: '10.5', b: '{"a":1}', c: '[]', d: 'null', e: 'true', f: '2026-01-01T00:00:00Z', g: '' },
      { a: '10.5', b: '{"a":1}', c: '[]', d: 'null', e: 'true', f: '2026-01-01T00:00:00Z', g: '' },
    ],
    [
      'keys that mean something elsewhere',
      { $1: '$1', '?': '?', 'a.b': 1, '': 2, 'a b': 3, '😀': '😀' },
      { $1: '$1', '?': '?', 'a.b': 1, '': 2, 'a b': 3, '😀': '😀' },
    ],
    [
      'the same object twice, which is no circle',
      (() => {
        const shared = { a: 1 };
        return { x: shared, y: [shared, shared] };
      })(),
      { x: { a: 1 }, y: [{ a: 1 }, { a: 1 }] },
    ],
  ])('%s', (_, payload, expected) => {
    const copy = storable(payload);
    expect(copy).toEqual(expected);
    expect(JSON.parse(JSON.stringify(copy))).toEqual(expected);
  });

  it('500 levels deep', () => {
    expect(storable(nested(500))).toEqual(nested(500));
  });

  it('a copy: what the caller changes afterwards is not stored', () => {
    const payload = { a: { b: [1] } };
    const copy = storable(payload);
    payload.a.b.push(2);
    expect(copy).toEqual({ a: { b: [1] } });
  });

  it('an own key __proto__, which pollutes nothing', () => {
    const json = '{"__proto__":{"isAdmin":true},"constructor":{"prototype":{"x":1}},"a":1}';
    const copy = storable(JSON.parse(json)) as Record<string, unknown>;
    expect(JSON.stringify(copy)).toBe(json);
    expect(Object.hasOwn(copy, '__proto__')).toBe(true);
    expect(copy['isAdmin']).toBeUndefined();
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype);
    expect(({} as Record<string, unknown>)['isAdmin']).toBeUndefined();
    expect(({} as Record<string, unknown>)['x']).toBeUndefined();
  });

  it('any JSON object, unchanged', () => {
    const objects = fc.dictionary(
      fc.oneof(
        fc.string({ unit: 'grapheme' }),
        fc.constantFrom('__proto__', 'constructor', 'toJSON', 'toString', '_outbox', ''),
      ),
      fc.jsonValue({ stringUnit: 'binary', maxDepth: 5 }),
    );
    // What PostgreSQL's text cannot hold has its own tests.
    const storableByPostgres = objects.filter(
      (object) => !JSON.stringify(object).includes('\\u0000'),
    );
    fc.assert(
      fc.property(storableByPostgres, (object) => {
        const copy = storable(object);
        expect(JSON.stringify(copy)).toBe(JSON.stringify(object));
        expect(JSON.parse(JSON.stringify(copy))).toEqual(copy);
      }),
      { numRuns: 500 },
    );
  });

  it('or it is refused, whatever it is: never anything else thrown, never anything else stored', () => {
    const anything = fc.object({
      withBigInt: true,
      withBoxedValues: true,
      withDate: true,
      withMap: true,
      withSet: true,
      withSparseArray: true,
      withTypedArray: true,
      withNullPrototype: true,
      withUnicodeString: true,
    } as fc.ObjectConstraints);
    fc.assert(
      fc.property(anything, (value) => {
        let copy: unknown;
        try {
          copy = storable(value);
        } catch (error) {
          expect(error).toBeInstanceOf(OutboxError);
          return;
        }
        expect(JSON.stringify(copy)).toBe(JSON.stringify(value));
      }),
      { numRuns: 500 },
    );
  });
});

describe('the keys that the outbox sets', () => {
  it.each(['_outbox', '_outboxFailed'])('%s at the top is refused', (key) => {
    const message = refusal(() => assertNoReservedKeys({ a: 1, [key]: 'mine' }));
    expect(message).toBe(`payload.${key} is set by the outbox itself: rename your key`);
    expect(refusal(() => assertNoReservedKeys({ [key]: undefined }))).toBe(message);
  });

  it('are the user’s own further down, and inherited ones are no keys', () => {
    const inherited = Object.create({ _outbox: 1 }) as Record<string, unknown>;
    expect(() => assertNoReservedKeys({ a: { _outbox: 1 }, _outbox2: 1 })).not.toThrow();
    expect(() => assertNoReservedKeys(inherited)).not.toThrow();
  });
});

describe('the size limit', () => {
  it('is in bytes of JSON, and says so', () => {
    const payload = { a: '한글' }; // {"a":"…"} and two characters of three bytes
    expect(() => assertPayloadSize(payload, 14)).not.toThrow();
    expect(refusal(() => assertPayloadSize(payload, 13))).toMatch(
      /^payload is 14 bytes of JSON, more than the 13 allowed \(option maxPayloadBytes\)/,
    );
  });

  it('is exact for every payload, however its bytes are come by', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue()), (value) => {
        const stored = toStorable(
          'payload',
          JSON.parse(JSON.stringify(value).replaceAll('\\u0000', '')),
        );
        const bytes = Buffer.byteLength(JSON.stringify(stored));
        expect(() => assertPayloadSize(stored, bytes)).not.toThrow();
        expect(refusal(() => assertPayloadSize(stored, bytes - 1))).toContain(`${bytes} bytes`);
      }),
    );
  });

  it.each([
    ['control characters', { ['\u001f'.repeat(9)]: '\u001f'.repeat(50) }],
    ['long numbers', { a: Array.from({ length: 50 }, () => -2.2250738585072014e-308) }],
    ['nothing but brackets', { a: [[[[[[{}], []], {}]]]], b: [] }],
  ])('is exact for %s', (_, payload) => {
    const bytes = Buffer.byteLength(JSON.stringify(payload));
    expect(() => assertPayloadSize(payload, bytes)).not.toThrow();
    expect(refusal(() => assertPayloadSize(payload, bytes - 1))).toContain(`${bytes} bytes`);
  });
});

function raise(): never {
  throw new Error('no');
}

function revokedProxy(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}
