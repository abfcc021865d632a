import type { Attributes, BatchObservableResult, Meter } from '@opentelemetry/api';
import type { FailureKind } from '../store/sentinel-store.js';
import type { ClaimedEvent, NewEvent, Settlement } from '../store/outbox-store.js';
import { BoundedNames } from './bounded-names.js';
import { failureName } from './failure-name.js';
import { GaugeReader, type GaugeReading, type GaugeSource } from './gauge-reader.js';
import type { Guard } from './guard.js';
import {
  ATTRIBUTE,
  DELAY_BUCKETS,
  DELIVER,
  DURATION_BUCKETS,
  ENQUEUE,
  METRIC,
  PROCESS,
  SEND,
  SYSTEM,
} from './semantic-conventions.js';
import type { DeliveryEnd } from './telemetry.js';

const MOST_FAILURE_NAMES = 100;
const FAILURE_KINDS: readonly FailureKind[] = ['transient', 'deterministic', 'unknown'];

interface Failure {
  readonly error: unknown;
}

/** Counts and measures. */
export class Meters {
  private readonly failureNames = new BoundedNames(MOST_FAILURE_NAMES);
  private readonly instruments: ReturnType<typeof instrumentsOf>;
  /** Of this outbox: an application may have two. */
  private readonly own: Attributes;

  constructor(
    private readonly meter: Meter,
    private readonly guard: Guard,
    private readonly destinations: BoundedNames,
    table: string,
  ) {
    this.own = { [ATTRIBUTE.table]: table };
    this.instruments = instrumentsOf(meter);
    this.beginAtZero();
  }

  sent(events: readonly NewEvent[], seconds: number, failure: Failure | undefined): void {
    this.guard.run(() => {
      const { sent, operationDuration } = this.instruments;
      const common = {
        [ATTRIBUTE.system]: SYSTEM,
        [ATTRIBUTE.operationName]: ENQUEUE,
        ...this.errorType(failure),
      };
      const counts = new Map<string, number>();
      for (const { eventType } of events) {
        const destination = this.destinations.of(eventType);
        counts.set(destination, (counts.get(destination) ?? 0) + 1);
      }
      for (const [destination, count] of counts)
        sent.add(count, { ...common, [ATTRIBUTE.destination]: destination });
      const [only, ...others] = counts.keys();
      operationDuration.record(seconds, {
        ...common,
        [ATTRIBUTE.operationType]: SEND,
        ...(only !== undefined && others.length === 0 && { [ATTRIBUTE.destination]: only }),
      });
    });
  }

  processed(
    eventType: string,
    listener: string | undefined,
    seconds: number,
    failure: Failure | undefined,
  ): void {
    this.guard.run(() => {
      const attributes = {
        [ATTRIBUTE.system]: SYSTEM,
        [ATTRIBUTE.operationName]: DELIVER,
        [ATTRIBUTE.destination]: this.destinations.of(eventType),
        ...(listener !== undefined && { [ATTRIBUTE.consumerGroup]: listener }),
        ...this.errorType(failure),
      };
      this.instruments.consumed.add(1, attributes);
      this.instruments.processDuration.record(seconds, {
        ...attributes,
        [ATTRIBUTE.operationType]: PROCESS,
      });
    });
  }

  deliveryEnded(eventType: string, how: DeliveryEnd, seconds: number): void {
    this.guard.run(() => {
      this.instruments.deliveryDuration.record(seconds, {
        ...this.ofType(eventType),
        [ATTRIBUTE.outcome]: how,
      });
    });
  }

  delivered({ eventType, scheduledAt }: ClaimedEvent, now: Date): void {
    this.guard.run(() => {
      const seconds = Math.max(0, now.getTime() - scheduledAt.getTime()) / 1_000;
      this.instruments.deliveryDelay.record(seconds, this.ofType(eventType));
    });
  }

  settled(eventType: string, outcome: Settlement['outcome']): void {
    this.guard.run(() => {
      this.instruments.settled.add(1, { ...this.ofType(eventType), [ATTRIBUTE.outcome]: outcome });
    });
  }

  leaseLost(): void {
    this.guard.run(() => this.instruments.leasesLost.add(1, this.own));
  }

  reaped(count: number): void {
    this.guard.run(() => this.instruments.reaped.add(count, this.own));
  }

  gateFailed(kind: FailureKind, closed: boolean): void {
    this.guard.run(() => {
      this.instruments.gateFailures.add(1, { ...this.own, [ATTRIBUTE.gateFailure]: kind });
      if (closed) this.instruments.gateClosings.add(1, this.own);
    });
  }

  /** @returns how to stop it */
  observe(source: GaugeSource): () => void {
    const gauges = gaugesOf(this.meter);
    const reader = new GaugeReader(source);
    const all = Object.values(gauges);
    const callback = async (result: BatchObservableResult): Promise<void> => {
      result.observe(gauges.relayAlive, source.relaying() ? 1 : 0, this.own);
      const reading = await reader.read();
      // An SDK goes on telling what it heard last; so it must hear that nothing was heard.
      result.observe(gauges.storeUp, reading === undefined ? 0 : 1, this.own);
      if (reading !== undefined) observeReading(result, gauges, reading, this.own);
    };
    this.meter.addBatchObservableCallback(callback, all);
    return () => this.guard.run(() => this.meter.removeBatchObservableCallback(callback, all));
  }

  /** What is watched for its first occurrence must be there before it, or its rise cannot be seen. */
  private beginAtZero(): void {
    const { leasesLost, reaped, gateFailures, gateClosings } = this.instruments;
    for (const counter of [leasesLost, reaped, gateClosings]) counter.add(0, this.own);
    for (const kind of FAILURE_KINDS)
      gateFailures.add(0, { ...this.own, [ATTRIBUTE.gateFailure]: kind });
  }

  private ofType(eventType: string): Attributes {
    return { ...this.own, [ATTRIBUTE.destination]: this.destinations.of(eventType) };
  }

  private errorType(failure: Failure | undefined): Attributes {
    if (failure === undefined) return {};
    return { [ATTRIBUTE.errorType]: this.failureNames.of(failureName(failure.error)) };
  }
}

// The return types of these two are long, and each says what its lines say.
function instrumentsOf(meter: Meter) {
  const duration = { unit: 's', advice: { explicitBucketBoundaries: DURATION_BUCKETS } };
  return {
    sent: meter.createCounter(METRIC.sent, {
      unit: '{message}',
      description: 'Events given to enqueue',
    }),
    operationDuration: meter.createHistogram(METRIC.operationDuration, {
      ...duration,
      description: 'How long an enqueue took',
    }),
    consumed: meter.createCounter(METRIC.consumed, {
      unit: '{message}',
      description: 'Deliveries of an event to a listener',
    }),
    processDuration: meter.createHistogram(METRIC.processDuration, {
      ...duration,
      description: 'How long a listener took',
    }),
    settled: meter.createCounter(METRIC.settled, {
      unit: '{event}',
      description: 'What became of claimed events',
    }),
    deliveryDuration: meter.createHistogram(METRIC.deliveryDuration, {
      ...duration,
      description: 'How long all listeners of an event took together',
    }),
    deliveryDelay: meter.createHistogram(METRIC.deliveryDelay, {
      unit: 's',
      description: 'From when an event was due until every listener had succeeded',
      advice: { explicitBucketBoundaries: DELAY_BUCKETS },
    }),
    reaped: meter.createCounter(METRIC.reaped, {
      unit: '{event}',
      description: 'Events whose relay died or stalled over them',
    }),
    leasesLost: meter.createCounter(METRIC.leasesLost, {
      unit: '{lease}',
      description: 'Leases lost to another process: such an event may be delivered twice',
    }),
    gateFailures: meter.createCounter(METRIC.gateFailures, {
      unit: '{failure}',
      description: 'Failed runs of gates',
    }),
    gateClosings: meter.createCounter(METRIC.gateClosings, {
      unit: '{closing}',
      description: 'Failures that closed a gate',
    }),
  };
}

function gaugesOf(meter: Meter) {
  const gauge = (name: string, unit: string, description: string) =>
    meter.createObservableGauge(name, { unit, description });
  return {
    relayAlive: gauge(METRIC.relayAlive, '', '1 while this process relays'),
    storeUp: gauge(METRIC.storeUp, '', '1 if the store answered; if not, the other gauges are old'),
    due: gauge(METRIC.due, '{event}', 'Events that are due and not claimed'),
    scheduled: gauge(METRIC.scheduled, '{event}', 'Events for later, or waiting for a retry'),
    processing: gauge(METRIC.processing, '{event}', 'Events that are claimed'),
    deadLetters: gauge(METRIC.deadLetters, '{event}', 'Dead letters'),
    unheard: gauge(METRIC.unheard, '{event}', 'Events that nobody has listened to so far'),
    oldestDueAge: gauge(METRIC.oldestDueAge, 's', 'How long the oldest due event has been due'),
    gatesFailing: gauge(METRIC.gatesFailing, '{gate}', 'Gates whose last run failed'),
    gatesClosed: gauge(METRIC.gatesClosed, '{gate}', 'Gates that are closed'),
  };
}

function observeReading(
  result: BatchObservableResult,
  gauges: ReturnType<typeof gaugesOf>,
  { events, gates }: GaugeReading,
  own: Attributes,
): void {
  const unheard = Object.values(events.unheard).reduce((sum, count) => sum + count, 0);
  result.observe(gauges.due, events.due, own);
  result.observe(gauges.scheduled, events.scheduled, own);
  result.observe(gauges.processing, events.processing, own);
  result.observe(gauges.deadLetters, events.failed, own);
  result.observe(gauges.unheard, unheard, own);
  result.observe(gauges.oldestDueAge, (events.oldestDueAgeMs ?? 0) / 1_000, own);
  if (gates === undefined) return;
  result.observe(gauges.gatesFailing, gates.failing, own);
  result.observe(gauges.gatesClosed, gates.closed, own);
}
