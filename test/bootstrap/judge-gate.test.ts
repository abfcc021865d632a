import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { closedForMs, judgeGate, type GatePolicy } from '../../src/bootstrap/judge-gate.js';
import type { FailureKind, Sentinel } from '../../src/index.js';

const UNTRIED: Sentinel = {
  key: 'k',
  version: '1',
  stampedAt: null,
  failures: 0,
  sameFailures: 0,
  lastError: null,
  lastErrorKind: null,
  failedAt: null,
  closedAt: null,
  closedUntil: null,
  closings: 0,
};
const POLICY: GatePolicy = { alarmAfter: 3, closedForMs, classify: () => undefined };

/** What a row of failures leads to, one after the other. */
function judgeAll(errors: readonly unknown[], policy: Partial<GatePolicy> = {}) {
  let before = UNTRIED;
  return errors.map((error) => {
    const failure = judgeGate(before, error, { ...POLICY, ...policy });
    before = {
      ...before,
      failures: failure.failures,
      sameFailures: failure.sameFailures,
      lastError: failure.error,
      closings: before.closings + (failure.closeMs === null ? 0 : 1),
    };
    return failure;
  });
}

describe('the judgement of a failed gate', () => {
  it('counts every failure in a row', () => {
    const failures = judgeAll([new Error('a'), new Error('b'), new Error('b')]);
    expect(failures.map((failure) => failure.failures)).toEqual([1, 2, 3]);
    expect(failures.map((failure) => failure.sameFailures)).toEqual([1, 1, 2]);
  });

  it('closes at the first deterministic failure', () => {
    expect(judgeAll([new TypeError('x')])).toMatchObject([
      { kind: 'deterministic', closeMs: 60_000 },
    ]);
  });

  it('closes at the 3rd unknown failure with the same message, and not if they differ', () => {
    const same = judgeAll(['odd', 'odd', 'odd'].map((message) => new Error(message)));
    expect(same.map(({ kind }) => kind)).toEqual(['unknown', 'unknown', 'deterministic']);
    const differing = judgeAll(['a', 'b', 'a', 'b'].map((message) => new Error(message)));
    expect(differing.every(({ closeMs }) => closeMs === null)).toBe(true);
  });

  it('never closes for a transient failure, however often it comes back', () => {
    const refused = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
    expect(judgeAll(Array.from({ length: 50 }, () => refused)).at(-1)).toMatchObject({
      kind: 'transient',
      closeMs: null,
      failures: 50,
      sameFailures: 50,
    });
  });

  it('stays closed longer each time: 1, 2, 4, … minutes, at most an hour', () => {
    const waits = judgeAll(Array.from({ length: 9 }, () => new TypeError('x')));
    expect(waits.map(({ closeMs }) => (closeMs ?? 0) / 60_000)).toEqual([
      1, 2, 4, 8, 16, 32, 60, 60, 60,
    ]);
  });

  it('lets a classifier of the user’s have the first word, and the default where it has none', () => {
    const classify = (error: unknown): FailureKind | undefined =>
      error instanceof TypeError ? 'transient' : undefined;
    expect(judgeAll([new TypeError('x'), new RangeError('y')], { classify })).toMatchObject([
      { kind: 'transient' },
      { kind: 'deterministic' },
    ]);
  });

  it('goes on without a classifier that fails, or that answers nonsense', () => {
    const failing = (): FailureKind => {
      throw new Error('in the classifier');
    };
    const nonsense = (): FailureKind => 'perhaps' as FailureKind;
    for (const classify of [failing, nonsense])
      expect(judgeAll([new TypeError('x')], { classify })).toMatchObject([
        { kind: 'deterministic' },
      ]);
  });

  it('makes a wait of whatever closedForMs answers', () => {
    const waits = [Number.NaN, -1, Infinity, '5', undefined, 7].map(
      (ms) => judgeAll([new TypeError('x')], { closedForMs: () => ms as number })[0]?.closeMs,
    );
    expect(waits).toEqual([0, 0, 365 * 86_400_000, 0, 0, 7]);
  });

  it('holds for any row of failures: counts grow by one, and a gate closes exactly when it is deterministic', () => {
    const error = fc.constantFrom(
      new Error('odd'),
      new TypeError('x'),
      Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }),
    );
    fc.assert(
      fc.property(
        fc.array(error, { maxLength: 20 }),
        fc.integer({ min: 1, max: 5 }),
        (errors, alarmAfter) => {
          for (const [index, failure] of judgeAll(errors, { alarmAfter }).entries()) {
            expect(failure.failures).toBe(index + 1);
            expect(failure.sameFailures).toBeLessThanOrEqual(failure.failures);
            expect(failure.closeMs !== null).toBe(failure.kind === 'deterministic');
          }
        },
      ),
    );
  });
});
