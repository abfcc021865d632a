import { describe, expect, it } from '@jest/globals';
import { BadRequestException, ServiceUnavailableException } from '@nestjs/common';
import fc from 'fast-check';
import { classifyFailure, NonRetryableError, OutboxError } from '../../src/index.js';
import { PublishFailedError } from '../../src/bootstrap/gate-errors.js';

const withCode = (code: string, message = 'failed'): Error =>
  Object.assign(new Error(message), { code });
const withStatus = (status: number): Error => Object.assign(new Error('failed'), { status });
const failedOf = (...errors: unknown[]): PublishFailedError =>
  new PublishFailedError(
    'a',
    errors.map((error, index) => ({ listener: `L${index}.on`, error })),
  );

describe('the classifier', () => {
  it.each<[string, unknown]>([
    ['a refused connection', withCode('ECONNREFUSED')],
    ['a name that cannot be resolved now', withCode('EAI_AGAIN')],
    ['a broken pipe, whose code looks like an SQLSTATE', withCode('EPIPE')],
    ['all addresses refused', new AggregateError([withCode('ECONNREFUSED')])],
    [
      'a failed fetch, which is a TypeError',
      new TypeError('fetch failed', { cause: withCode('ECONNRESET') }),
    ],
    ['a failed fetch without a cause', new TypeError('fetch failed')],
    ['undici’s timeout', withCode('UND_ERR_HEADERS_TIMEOUT')],
    ['AbortSignal.timeout', new DOMException('The operation timed out', 'TimeoutError')],
    ['a listener’s timeout', 'timed out after 30000 ms (option relay.listenerTimeoutMs)'],
    ['Redis that is gone', new Error('Connection is closed.')],
    ['a pool without a free connection', new Error('timeout exceeded when trying to connect')],
    ['a cut connection', new Error('Connection terminated unexpectedly')],
    ['too many connections', withCode('53300')],
    ['a shutdown of the server', withCode('57P01')],
    ['a deadlock', withCode('40P01')],
    ['a serialization failure', withCode('40001')],
    ['a connection failure', withCode('08006')],
    ['a lock that could not be had', withCode('55P03')],
    ['HTTP 429', withStatus(429)],
    ['HTTP 503', new ServiceUnavailableException()],
    ['HTTP 502 of axios', Object.assign(new Error('x'), { response: { status: 502 } })],
    [
      'HTTP 500 of an AWS client',
      Object.assign(new Error('x'), { $metadata: { httpStatusCode: 500 } }),
    ],
    ['Prisma that cannot reach its server', withCode('P1001')],
    [
      'the driver’s error within that of an ORM',
      Object.assign(new Error('query failed'), { driverError: withCode('57014') }),
    ],
  ])('takes %s for transient', (_, error) => {
    expect(classifyFailure(error)).toBe('transient');
  });

  it.each<[string, unknown]>([
    ['a type error', new TypeError("Cannot read properties of undefined (reading 'id')")],
    ['a range error', new RangeError('Invalid array length')],
    ['an assertion', Object.assign(new Error('x'), { name: 'AssertionError' })],
    ['a failed validation', Object.assign(new Error('x'), { name: 'ZodError' })],
    ['an invalid argument', new OutboxError('INVALID_ARGUMENT', 'payload.a is NaN')],
    ['a listener that says so', new NonRetryableError('never')],
    ['a unique violation', withCode('23505')],
    ['text that is no number', withCode('22P02')],
    ['a missing column', withCode('42703')],
    ['a missing grant', withCode('42501')],
    ['one row updated twice by one upsert', withCode('21000')],
    ['too many arguments', withCode('54023')],
    [
      'too many parameters in node-postgres, whose class is that of connections',
      withCode('08P01', 'bind message has 3 parameter formats but 0 parameters'),
    ],
    [
      'too many parameters in postgres.js',
      withCode('MAX_PARAMETERS_EXCEEDED', 'Max number of parameters (65534) exceeded'),
    ],
    ['too many parameters in Prisma', withCode('P2029')],
    ['too many bind variables', new Error('too many bind variables in prepared statement')],
    ['HTTP 400', new BadRequestException()],
    ['HTTP 422', withStatus(422)],
    ['HTTP 413', withStatus(413)],
    [
      'a constraint within an error of an ORM within another',
      new Error('sync failed', {
        cause: Object.assign(new Error('q'), { driverError: withCode('23502') }),
      }),
    ],
  ])('takes %s for deterministic', (_, error) => {
    expect(classifyFailure(error)).toBe('deterministic');
  });

  it.each<[string, unknown]>([
    ['a plain error', new Error('no luck')],
    ['an expired token, which the user can mend', withStatus(401)],
    ['a missing record, which may appear', withStatus(404)],
    ['an exception raised in SQL', withCode('P0001')],
    ['nothing', undefined],
    ['a number', 42],
    ['an object', { no: 'error' }],
    ['a status that is none of HTTP', Object.assign(new Error('x'), { status: 1 })],
  ])('does not know of %s', (_, error) => {
    expect(classifyFailure(error)).toBe('unknown');
  });

  it('of several failures takes the worst: a retry must mend them all', () => {
    const transient = withCode('ECONNREFUSED');
    const unknown = new Error('no luck');
    const deterministic = new TypeError('x is not a function');
    expect(classifyFailure(failedOf(transient, transient))).toBe('transient');
    expect(classifyFailure(failedOf(transient, unknown))).toBe('unknown');
    expect(classifyFailure(failedOf(transient, deterministic, unknown))).toBe('deterministic');
  });

  it('survives whatever is thrown: circles, getters that throw, proxies, depth', () => {
    const circle = new Error('circle');
    circle.cause = circle;
    expect(classifyFailure(circle)).toBe('unknown');
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    expect(classifyFailure({ inner: proxy, cause: proxy })).toBe('unknown');
    fc.assert(
      fc.property(fc.anything({ withNullPrototype: true, maxDepth: 4 }), (thrown) => {
        expect(['transient', 'deterministic', 'unknown']).toContain(classifyFailure(thrown));
      }),
    );
  });

  it('says the same of an error however deep it is wrapped, down to what it looks at', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(withCode('ECONNREFUSED'), withCode('23505'), new TypeError('x')),
        fc.array(fc.constantFrom('cause', 'driverError', 'original', 'parent'), { maxLength: 6 }),
        (error, wrappers) => {
          const wrapped = wrappers.reduce<unknown>(
            (inner, property) => Object.assign(new Error('wrapped'), { [property]: inner }),
            error,
          );
          expect(classifyFailure(wrapped)).toBe(classifyFailure(error));
        },
      ),
    );
  });
});
