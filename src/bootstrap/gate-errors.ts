import { OutboxError, type OutboxErrorCode } from '../event/outbox-error.js';
import type { ListenerFailure } from '../delivery/attempt.js';
import { errorText, MAX_ERROR_TEXT } from '../event/error-text.js';
import type { GateName } from '../store/sentinel-store.js';

/** Listeners have failed. What each of them threw is in `failures`. */
export class PublishFailedError extends OutboxError {
  override readonly name: string = 'PublishFailedError';

  constructor(
    readonly eventType: string,
    readonly failures: readonly ListenerFailure[],
  ) {
    super('PUBLISH_FAILED', `${eventType} failed: ${failuresText(failures)}`);
  }
}

/** Readable text for a failure; that of listeners is told by their names alone. */
export function reasonText(error: unknown): string {
  return errorText(error instanceof PublishFailedError ? error.message : error);
}

/** Every listener's name is told, however long the reason of another is. */
function failuresText(failures: readonly ListenerFailure[]): string {
  const share = Math.max(20, Math.floor(MAX_ERROR_TEXT / Math.max(1, failures.length)) - 2);
  return failures
    .map(({ listener, error }) => errorText(`${listener}: ${errorText(error)}`, share))
    .join('; ');
}

/** The work of a gate was not done, and its sentinel is not stamped. */
export abstract class GateError extends OutboxError {
  readonly key: string;
  readonly version: string;

  constructor(code: OutboxErrorCode, { key, version }: GateName, message: string, cause?: unknown) {
    super(code, message, cause === undefined ? {} : { cause });
    this.key = key;
    this.version = version;
  }
}

/** It failed in a way that may pass: degrade, and call again later. */
export class TransientGateError extends GateError {
  override readonly name: string = 'TransientGateError';

  /** @param failures in a row, this one included */
  constructor(
    gate: GateName,
    readonly failures: number,
    message: string,
    cause?: unknown,
  ) {
    super('GATE_TRANSIENT', gate, message, cause);
  }
}

/** It fails the same way each time: somebody must mend the cause. */
export class DeterministicGateError extends GateError {
  override readonly name: string = 'DeterministicGateError';

  /** @param failures in a row, this one included */
  constructor(
    gate: GateName,
    readonly failures: number,
    message: string,
    cause?: unknown,
    code: OutboxErrorCode = 'GATE_DETERMINISTIC',
  ) {
    super(code, gate, message, cause);
  }
}

/** It has failed that way before, and is not tried: nothing was loaded. */
export class GateClosedError extends DeterministicGateError {
  override readonly name: string = 'GateClosedError';

  constructor(
    gate: GateName,
    failures: number,
    message: string,
    /** Closed since then… */
    readonly since: Date,
    /** …and tried again by the first call after this moment. By the database's clock. */
    readonly until: Date,
    /** What it failed of, as text. */
    readonly reason: string,
  ) {
    super(gate, failures, message, undefined, 'GATE_CLOSED');
  }
}
