/** What went wrong, in one word a program can branch on. */
export type OutboxErrorCode =
  /** A value handed in by the caller (an event, an option, a filter) is not usable. */
  | 'INVALID_ARGUMENT'
  /** The entity was asked for a step its state does not allow. */
  | 'INVALID_TRANSITION'
  /** The table is missing, older than the code needs, or newer than the code knows. */
  | 'SCHEMA_MISMATCH'
  /** The application lacks something the outbox stands on, e.g. `EventEmitterModule.forRoot()`. */
  | 'SETUP'
  /** The outbox is shutting down and takes no new work. */
  | 'SHUTTING_DOWN'
  /** Listeners of a published event have failed, or there are none. */
  | 'PUBLISH_FAILED'
  | 'UNHEARD'
  /** A gate was not passed, and a retry may mend it… */
  | 'GATE_TRANSIENT'
  /** …or not; it is closed. */
  | 'GATE_DETERMINISTIC'
  | 'GATE_CLOSED';

/**
 * The one error class this library throws. `message` names the field, the value and the fix; `cause` keeps the
 * original error where there was one. Errors of the database itself are passed on as they are.
 */
export class OutboxError extends Error {
  override readonly name: string = 'OutboxError';

  constructor(
    readonly code: OutboxErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

export function invalid(message: string, options?: ErrorOptions): OutboxError {
  return new OutboxError('INVALID_ARGUMENT', message, options);
}

// A registered symbol and not `instanceof`: two copies of the package in one process (a monorepo, a linked
// package) must still understand each other.
const NON_RETRYABLE = Symbol.for('nestjs-outbox-relay.non-retryable');

/**
 * Thrown by a listener to say "never retry this": once no other listener of the event is left that a retry could
 * help, the event becomes a dead letter at once, whatever attempts remain.
 *
 * ```ts
 * throw new NonRetryableError('the supplier has no phone number');
 * ```
 */
export class NonRetryableError extends Error {
  override readonly name: string = 'NonRetryableError';
  readonly [NON_RETRYABLE] = true;
}

export function isNonRetryable(error: unknown): boolean {
  return typeof error === 'object' && error !== null && NON_RETRYABLE in error;
}
