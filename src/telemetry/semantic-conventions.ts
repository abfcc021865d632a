// The names of https://opentelemetry.io/docs/specs/semconv/messaging/ (status: development), and ours under `outbox.`.
// As text, not from a package: whoever does not use OpenTelemetry has nothing to install.

export const SYSTEM = 'nestjs-outbox-relay';

/** What the system calls its operations… */
export const ENQUEUE = 'enqueue';
export const DELIVER = 'deliver';

/** …and what the conventions call them. */
export const SEND = 'send';
export const PROCESS = 'process';

export const ATTRIBUTE = {
  system: 'messaging.system',
  operationName: 'messaging.operation.name',
  operationType: 'messaging.operation.type',
  /** The event type. */
  destination: 'messaging.destination.name',
  /** The listener: each gets every event of its type, as each consumer group does. */
  consumerGroup: 'messaging.consumer.group.name',
  messageId: 'messaging.message.id',
  batchCount: 'messaging.batch.message_count',
  errorType: 'error.type',
  /** 1 for the first. */
  attempt: 'outbox.attempt',
  outcome: 'outbox.outcome',
  /** Schema and table: an application may have two outboxes. */
  table: 'outbox.table',
  gateFailure: 'outbox.gate.failure_kind',
} as const;

export const METRIC = {
  sent: 'messaging.client.sent.messages',
  operationDuration: 'messaging.client.operation.duration',
  consumed: 'messaging.client.consumed.messages',
  processDuration: 'messaging.process.duration',
  settled: 'outbox.events.settled',
  deliveryDuration: 'outbox.delivery.duration',
  deliveryDelay: 'outbox.delivery.delay',
  reaped: 'outbox.events.reaped',
  leasesLost: 'outbox.leases.lost',
  gateFailures: 'outbox.gate.failures',
  gateClosings: 'outbox.gate.closings',
  relayAlive: 'outbox.relay.alive',
  storeUp: 'outbox.store.up',
  due: 'outbox.events.due',
  scheduled: 'outbox.events.scheduled',
  processing: 'outbox.events.processing',
  deadLetters: 'outbox.events.dead',
  unheard: 'outbox.events.unheard',
  oldestDueAge: 'outbox.oldest_due.age',
  gatesFailing: 'outbox.gates.failing',
  gatesClosed: 'outbox.gates.closed',
} as const;

/** Seconds: the boundaries that the conventions want for operations… */
export const DURATION_BUCKETS = [
  0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30,
];

/** …and such as tell a wake (milliseconds) from a tick (15 s) and from a backlog. */
export const DELAY_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15, 30, 60, 300, 900, 3_600];
