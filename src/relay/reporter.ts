import type { ClaimedEvent, Settlement } from '../store/outbox-store.js';
import type { ListenerFailure } from '../delivery/attempt.js';
import type { ActivityCounter } from './activity-counter.js';
import type { Log } from './log.js';

/** Told to the application when an event is set aside (as the local event `outbox.dead_letter`). */
export interface DeadLetterNotice {
  readonly id: string;
  readonly eventType: string;
  readonly retryCount: number;
  readonly lastError: string;
}

/** Says what became of events: a line each, without payloads. */
export class Reporter {
  private readonly unheardTypes = new Set<string>();

  constructor(
    private readonly log: Log,
    private readonly onDeadLetter: (notice: DeadLetterNotice) => void,
    private readonly debugEnabled: () => boolean = () => true,
    private readonly counter?: ActivityCounter,
  ) {}

  settled(settled: readonly { event: ClaimedEvent; settlement: Settlement }[]): void {
    // Asked once: at full speed, making lines that nobody reads would be a tenth of the work.
    const debugs = this.debugEnabled();
    for (const { event, settlement } of settled) {
      this.counter?.count(event.eventType, settlement.outcome);
      if (settlement.outcome !== 'completed') this.notDelivered(event, settlement);
      else if (debugs) this.log.debug(`${event.eventType} ${event.id} delivered`);
    }
  }

  /** Where a failure came from, for whoever turns on debug: Nest would have logged it, had we not taken it over. */
  failed({ id, eventType }: ClaimedEvent, failures: readonly ListenerFailure[]): void {
    if (!this.debugEnabled()) return;
    for (const { listener, error } of failures) {
      const stack = typeof error === 'object' && error !== null && 'stack' in error && error.stack;
      if (typeof stack === 'string') this.log.debug(`${eventType} ${id} ${listener}: ${stack}`);
    }
  }

  leaseLost({ id, eventType }: ClaimedEvent): void {
    this.log.warn(
      `${eventType} ${id}: the lease was lost to another process, this one's outcome is not stored`,
    );
  }

  private notDelivered(
    { id, eventType }: ClaimedEvent,
    settlement: Exclude<Settlement, { outcome: 'completed' }>,
  ): void {
    switch (settlement.outcome) {
      case 'retry':
        this.log.warn(
          `${eventType} ${id} failed (attempt ${settlement.retryCount}), again in ${seconds(settlement.delayMs)} s: ${settlement.lastError}`,
        );
        return;
      case 'failed': {
        const { retryCount, lastError } = settlement;
        this.log.error(
          `${eventType} ${id} is a dead letter after ${retryCount} failed attempt(s): ${lastError}`,
        );
        this.onDeadLetter({ id, eventType, retryCount, lastError });
        return;
      }
      case 'unheard':
        if (this.unheardTypes.has(eventType)) return;
        this.unheardTypes.add(eventType);
        this.log.warn(
          `nobody in this process listens to ${eventType}: its events wait (is an @OnEvent method missing or renamed?)`,
        );
        return;
      case 'released':
        this.log.debug(`${eventType} ${id} given back, the relay stops`);
    }
  }
}

function seconds(ms: number): number {
  return Math.round(ms / 100) / 10;
}
