/** A contender with its settings, as a table shows it. */
export interface Entry {
  readonly key: string;
  readonly label: string;
  /** Below bench/. */
  readonly module: string;
  readonly options: object;
  /** As its own documentation names them. */
  readonly settings: string;
  /** What it does not do of what this library does. */
  readonly without: string;
  /** It drains only so much of the backlog: with all of it, a run takes many minutes, and goes against it. */
  readonly share?: number;
}

const NOTHING_ELSE = 'fencing, retries, crash recovery, knowing its listeners';

const limit = (batch: number, loops: number, table: 'seed' | 'outbox'): Entry => ({
  key: `limit-${table}-${batch}x${loops}`,
  label: table === 'seed' ? 'the limit: bare `pg` loop' : 'the same loop on this library’s table',
  module: 'contenders/limit.ts',
  options: { batch, loops, table, shape: 'joined' },
  settings: `batch ${batch.toLocaleString('en-US')}, ${loops} loop${loops > 1 ? 's' : ''}`,
  without: table === 'seed' ? NOTHING_ELSE : 'retries, crash recovery, knowing its listeners',
});

export const LIMITS: readonly Entry[] = [
  limit(100, 1, 'seed'),
  limit(100, 2, 'seed'),
  limit(1_000, 1, 'seed'),
  limit(1_000, 2, 'seed'),
];

const LIMITS_ON_OUTBOX_TABLE: readonly Entry[] = [
  limit(100, 2, 'outbox'),
  limit(1_000, 2, 'outbox'),
];

export const OUTBOX_DEFAULTS: Entry = {
  key: 'outbox-defaults',
  label: '**nestjs-outbox-relay**, defaults',
  module: 'contenders/outbox.ts',
  options: {},
  settings: 'none given (batchSize 100, concurrency 10)',
  without: '–',
};

export const OUTBOX_TUNED: Entry = {
  key: 'outbox-tuned',
  label: '**nestjs-outbox-relay**, tuned',
  module: 'contenders/outbox.ts',
  options: { relay: { batchSize: 1_000 } },
  settings: 'relay: { batchSize: 1000 }',
  without: '–',
};

const SEED_LOOP: Entry = {
  key: 'seed-loop',
  label: 'one event at a time, three statements',
  module: 'contenders/limit.ts',
  options: { batch: 20, loops: 1, table: 'seed', shape: 'seed' },
  settings: '20 a poll, polling without a pause',
  without: `${NOTHING_ELSE}; more than one process`,
};

export const GRAPHILE_BEST: Entry = {
  key: 'graphile-worker',
  label: 'graphile-worker 0.18.0, best',
  module: 'contenders/graphile-worker.mjs',
  options: {
    concurrentJobs: 24,
    maxPoolSize: 25,
    localQueue: { size: 1_000 },
    completeJobBatchDelay: 20,
    failJobBatchDelay: 20,
  },
  settings: 'concurrentJobs 24, localQueue 1,000, completeJobBatchDelay 20',
  without:
    'history (jobs are deleted), several listeners an event, fencing (a stuck job is free after 4 h)',
};

export const GRAPHILE_DOCS: Entry = {
  ...GRAPHILE_BEST,
  key: 'graphile-worker-docs',
  label: 'graphile-worker 0.18.0, its performance page',
  options: {
    concurrentJobs: 24,
    maxPoolSize: 25,
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  },
  settings: 'concurrentJobs 24, localQueue 500, completeJobBatchDelay 0',
};

export const GRAPHILE_DEFAULTS: Entry = {
  ...GRAPHILE_BEST,
  key: 'graphile-worker-defaults',
  label: 'graphile-worker 0.18.0, defaults',
  options: { concurrentJobs: 10 },
  settings: 'concurrentJobs 10',
};

export const PG_BOSS_BEST: Entry = {
  key: 'pg-boss',
  label: 'pg-boss 12.38.0, best',
  module: 'contenders/pg-boss.mjs',
  options: {
    work: {
      batchSize: 1_000,
      localConcurrency: 2,
      burstWhenBatchFull: true,
      pollingIntervalSeconds: 0.5,
    },
  },
  settings: 'batchSize 1,000, localConcurrency 2, burstWhenBatchFull',
  without: 'an outcome per event (a batch fails as a whole), several listeners an event',
};

const PG_TRANSACTIONAL_OUTBOX_BEST: Entry = {
  key: 'pg-transactional-outbox',
  label: 'pg-transactional-outbox 0.5.7, best',
  module: 'contenders/pg-transactional-outbox.mjs',
  options: {
    settings: { nextMessagesBatchSize: 500, nextMessagesPollingIntervalInMs: 10 },
    pool: 25,
    everyBatchFull: true,
  },
  settings: 'polling, batch 500, pool 25',
  without: 'backoff, several listeners a message',
};

export const PG_TRANSACTIONAL_OUTBOX_README: Entry = {
  ...PG_TRANSACTIONAL_OUTBOX_BEST,
  key: 'pg-transactional-outbox-readme',
  label: 'pg-transactional-outbox 0.5.7, its README',
  options: {
    settings: { nextMessagesBatchSize: 5, nextMessagesPollingIntervalInMs: 250 },
    pool: 10,
  },
  settings: 'polling, batch 5, interval 250 ms; a tenth of the events',
  share: 0.1,
};

export const FULLSTACKHOUSE: Entry = {
  key: 'fullstackhouse',
  label: '@fullstackhouse/nestjs-outbox 4.1.2',
  module: 'nest-11/fullstackhouse.mjs',
  options: { pool: 10, module: { pollingInterval: 100, maxEventsPerPoll: 1_000 } },
  settings: 'TypeORM driver, pool 10, maxEventsPerPoll 1,000, no logging',
  without: 'history (events are deleted), leases and fencing, redrive',
};

/** In the order of the table. */
export const DRAINING: readonly Entry[] = [
  ...LIMITS,
  ...LIMITS_ON_OUTBOX_TABLE,
  OUTBOX_DEFAULTS,
  OUTBOX_TUNED,
  GRAPHILE_BEST,
  GRAPHILE_DOCS,
  GRAPHILE_DEFAULTS,
  PG_BOSS_BEST,
  PG_TRANSACTIONAL_OUTBOX_BEST,
  PG_TRANSACTIONAL_OUTBOX_README,
  FULLSTACKHOUSE,
  SEED_LOOP,
];
