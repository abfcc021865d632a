import type { DeliveryOutcome } from '../delivery/delivery.js';
import { errorText, MAX_ERROR_TEXT } from '../event/error-text.js';
import { isNonRetryable } from '../event/outbox-error.js';
import { OutboxEvent } from '../event/outbox-event.js';
import type { ClaimedEvent, Settlement } from '../store/outbox-store.js';
import { UNHEARD_RETRY_MS, type RelaySettings } from './relay-settings.js';

export interface JudgeContext {
  readonly settings: Pick<RelaySettings, 'retry' | 'unheardGraceMs'>;
  /** The database's now. */
  readonly now: Date;
  /** 0 to 1. */
  readonly random: number;
}

/** What becomes of an event after a delivery. The entity decides; this translates. */
export function judge(
  event: ClaimedEvent,
  outcome: Exclude<DeliveryOutcome, { kind: 'cancelled' }>,
  context: JudgeContext,
): Settlement {
  // Every listener has succeeded: nothing is left to decide.
  if (outcome.kind === 'answered' && outcome.failures.length === 0)
    return { id: event.id, leaseToken: event.leaseToken, outcome: 'completed' };

  const entity = entityOf(event);
  const { settings, now, random } = context;
  if (outcome.kind === 'unheard') {
    entity.markAsUnheard(now, { retryInMs: UNHEARD_RETRY_MS, graceMs: settings.unheardGraceMs });
    if (entity.getStatus() === 'FAILED') return settlementOf(event, entity);
    return {
      id: event.id,
      leaseToken: event.leaseToken,
      outcome: 'unheard',
      delayMs: UNHEARD_RETRY_MS,
    };
  }

  entity.acknowledge(outcome.succeeded);
  // A share for each, so that a long reason does not hide the names of the other listeners.
  const share = Math.max(20, Math.floor(MAX_ERROR_TEXT / outcome.failures.length) - 2);
  const reasons = outcome.failures.map(({ listener, error }) =>
    errorText(`${listener}: ${errorText(error)}`, share),
  );
  // What can be retried never dies: as long as one failure may mend, the event is tried again.
  const retryable = outcome.failures.some(({ error }) => !isNonRetryable(error));
  entity.markAsFailed(errorText(reasons.join('; ')), {
    policy: settings.retry,
    retryable,
    now,
    random,
  });
  return settlementOf(event, entity);
}

/**
 * What becomes of an event whose relay died over it: a crash is a failed attempt, or a crashing listener would loop
 * for ever.
 *
 * @param place among those that are judged together. They went down together, and most of them have done nothing; if
 *   they also came back together, the one that brings processes down would take the others with it each time, until all
 *   of them are dead letters. So each comes a little later than the one before, the last after twice the backoff.
 */
export function judgeExpired(
  event: ClaimedEvent,
  { settings, now, random }: JudgeContext,
  place: { readonly index: number; readonly of: number },
): Settlement {
  const entity = entityOf(event);
  entity.markAsFailed(
    'the lease ran out: the process that held the event died, stalled or lost its database',
    {
      policy: settings.retry,
      now,
      random,
    },
  );
  const settlement = settlementOf(event, entity);
  if (settlement.outcome !== 'retry') return settlement;
  return { ...settlement, delayMs: settlement.delayMs * (1 + place.index / place.of) };
}

function entityOf(event: ClaimedEvent): OutboxEvent {
  return OutboxEvent.reconstitute({ ...event, status: 'PROCESSING' });
}

function settlementOf({ id, leaseToken }: ClaimedEvent, entity: OutboxEvent): Settlement {
  const lease = { id, leaseToken };
  const failure = {
    retryCount: entity.getRetryCount(),
    lastError: entity.getLastError() ?? '',
    acknowledgedBy: entity.getAcknowledgedBy(),
  };
  if (entity.getStatus() === 'FAILED') return { ...lease, ...failure, outcome: 'failed' };
  return { ...lease, ...failure, outcome: 'retry', delayMs: entity.getDelayMs() ?? 0 };
}
