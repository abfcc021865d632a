import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { eventTypeProblem } from '../event/event-type.js';
import type { ClaimedEvent } from '../store/outbox-store.js';
import { Attempt, reportingTo, type ListenerFailure, type StrayLog } from './attempt.js';
import { Deadlines, type Limited } from './deadlines.js';
import type { Emitter } from './emitter.js';
import type { ListenerRegistry } from './listener-registry.js';
import { observeAgain } from './observe.js';
import { DeliveryContext } from './delivery-context.js';

/** How a delivery ended. */
export type DeliveryOutcome =
  /** Every listener was called and has answered, or was given up. No failure means delivered. */
  | {
      readonly kind: 'answered';
      readonly succeeded: readonly string[];
      readonly failures: readonly ListenerFailure[];
    }
  /** Nobody in this process listens to the event's type. */
  | { readonly kind: 'unheard' }
  /** Broken off from outside: the lease was lost, or the process stops. */
  | { readonly kind: 'cancelled'; readonly succeeded: readonly string[] };

/** A delivery under way. */
export interface RunningDelivery {
  /** Never rejects. */
  readonly outcome: Promise<DeliveryOutcome>;
  cancel(reason: Error): void;
}

export interface DeliveryOptions {
  /** How long all listeners of one event may take, in milliseconds. */
  readonly timeoutMs: number;
}

// A listener the emitter calls later (`async`, `nextTick`) starts within two turns of the event loop. One that is
// request-scoped, when another has already failed the emit, may need its provider made first.
const LATE_CREATION_MS = 1_000;

/**
 * Delivers events to the listeners of an emitter, and knows of each whether it succeeded: a resolved `emitAsync`
 * proves nothing, since `@OnEvent` swallows errors by default and the first rejection ends the wait for the others.
 */
export class Delivery {
  private readonly goodTypes = new Set<string>();
  private readonly deadlines: Deadlines;

  constructor(
    private readonly emitter: Emitter,
    private readonly registry: ListenerRegistry,
    { timeoutMs }: DeliveryOptions,
    private readonly strayLog?: StrayLog,
  ) {
    this.deadlines = new Deadlines(timeoutMs);
  }

  /** Whether anybody in this process listens to this type. */
  hears(eventType: string): boolean {
    return this.emitter.listeners(eventType).length > 0;
  }

  start(event: ClaimedEvent): RunningDelivery {
    const problem = this.typeProblem(event.eventType) ?? payloadProblem(event.payload);
    if (problem !== undefined) return ended(rejected(problem));
    if (!this.hears(event.eventType)) return ended({ kind: 'unheard' });

    const expected = this.registry.expected(event.eventType);
    for (const listener of expected) observeAgain(listener);
    const payload: Record<string, unknown> = { ...event.payload };
    const attempt = new Attempt(payload, expected, event.acknowledgedBy, this.strayLog);
    // Assignment is safe: `_outbox` is no accessor, and enqueue refuses payloads that bring their own.
    payload['_outbox'] = new DeliveryContext(event, attempt);
    const running = new Running(attempt, this.deadlines);
    void this.emit(attempt, event.eventType, payload).then(() => running.answer());
    return running;
  }

  // Once per type and not per event; bounded, for event types come from data.
  private typeProblem(eventType: string): string | undefined {
    if (this.goodTypes.has(eventType)) return undefined;
    const problem = eventTypeProblem(eventType);
    if (problem === undefined && this.goodTypes.size < 1_000) this.goodTypes.add(eventType);
    return problem;
  }

  /** Resolves when every listener has answered. Never rejects. */
  private async emit(attempt: Attempt, eventType: string, payload: object): Promise<void> {
    let answers: Promise<unknown> | undefined;
    try {
      answers = reportingTo(attempt, emitAsync, this.emitter, eventType, payload);
    } catch (error) {
      // Thrown out of the emitter's loop: by a raw listener, for `@OnEvent` methods are called by async functions.
      attempt.failUnnamed(error);
    }
    let rejection: { error: unknown } | undefined;
    try {
      await answers;
    } catch (error) {
      rejection = { error };
    }
    if (attempt.waits) await nextTurn().then(() => nextTurn());
    await attempt.quiet({ evenWaiting: false });
    if (rejection === undefined) return;

    if (attempt.waits) {
      await Promise.race([
        attempt.quiet({ evenWaiting: true }),
        sleep(LATE_CREATION_MS, undefined, { ref: false }),
      ]);
      await attempt.quiet({ evenWaiting: false });
    }
    attempt.failUnobserved(rejection.error);
  }
}

/** A delivery between its start and the first of: every listener's answer, the deadline, a word from outside. */
class Running implements RunningDelivery, Limited {
  readonly outcome: Promise<DeliveryOutcome>;
  private resolve: (outcome: DeliveryOutcome) => void = () => {};

  constructor(
    private readonly attempt: Attempt,
    private readonly deadlines: Deadlines,
  ) {
    this.outcome = new Promise((resolve) => (this.resolve = resolve));
    deadlines.begin(this);
  }

  answer(): void {
    this.deadlines.end(this);
    this.attempt.close();
    this.resolve(answered(this.attempt));
  }

  timeOut(): void {
    const { limitMs } = this.deadlines;
    this.attempt.close(new Error(`timed out after ${limitMs} ms (option relay.listenerTimeoutMs)`));
    this.resolve(answered(this.attempt));
  }

  cancel(reason: Error): void {
    this.deadlines.end(this);
    this.attempt.close(reason);
    this.resolve({ kind: 'cancelled', succeeded: this.attempt.result().succeeded });
  }
}

function emitAsync(emitter: Emitter, eventType: string, payload: object): Promise<unknown> {
  return emitter.emitAsync(eventType, payload);
}

function payloadProblem(payload: unknown): string | undefined {
  if (typeof payload === 'object' && payload !== null && !Array.isArray(payload)) return undefined;
  return `the stored payload is not a JSON object: ${JSON.stringify(payload).slice(0, 100)}`;
}

function rejected(problem: string): DeliveryOutcome {
  return {
    kind: 'answered',
    succeeded: [],
    failures: [{ listener: 'the outbox', error: problem }],
  };
}

function answered(attempt: Attempt): DeliveryOutcome {
  return { kind: 'answered', ...attempt.result() };
}

function ended(outcome: DeliveryOutcome): RunningDelivery {
  return { outcome: Promise.resolve(outcome), cancel: () => {} };
}
