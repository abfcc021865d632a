/** pg-transactional-outbox with its polling listener. Messages are kept; each is handled in a transaction of its own. */
import pg from 'pg';
import {
  DatabaseSetup,
  getDisabledLogger,
  initializeMessageStorage,
  initializePollingMessageListener,
} from 'pg-transactional-outbox';
import { BUSINESS_INSERT, BUSINESS_TABLE, payloadsSql } from './sql.ts';

const SETUP = {
  outboxOrInbox: 'outbox',
  database: 'postgres',
  schema: 'public',
  table: 'outbox',
  listenerRole: 'postgres',
  handlerRole: 'postgres',
  nextMessagesName: 'next_outbox_messages',
};

/**
 * @param {string} url
 * @param {{ settings: object, pool: number, everyBatchFull?: boolean }} options
 * @returns {import('./contender.ts').Contender}
 */
export function create(url, { settings, pool: max, everyBatchFull = false }) {
  const pool = new pg.Pool({ connectionString: url, max: 10 });
  pool.on('error', () => {});
  const config = {
    outboxOrInbox: 'outbox',
    dbListenerConfig: { connectionString: url, max },
    dbHandlerConfig: { connectionString: url, max },
    settings: {
      dbSchema: 'public',
      dbTable: 'outbox',
      nextMessagesFunctionName: 'next_outbox_messages',
      enableMaxAttemptsProtection: false,
      enablePoisonousMessageProtection: false,
      ...settings,
    },
  };
  const logger = getDisabledLogger();
  return {
    table: 'outbox',
    openSql:
      'SELECT EXISTS (SELECT FROM outbox WHERE processed_at IS NULL AND abandoned_at IS NULL) AS open',
    async prepare() {
      await pool.query(DatabaseSetup.dropAndCreateTable(SETUP));
      await pool.query(DatabaseSetup.createPollingFunction(SETUP));
      await pool.query(DatabaseSetup.setupPollingIndexes(SETUP));
      await pool.query(BUSINESS_TABLE);
    },
    async fill(backlog) {
      await pool.query(
        `INSERT INTO outbox (id, aggregate_type, aggregate_id, message_type, segment, concurrency, payload)
         SELECT gen_random_uuid(), 'bench', n, 'event', NULL, 'parallel', payload FROM (${payloadsSql(backlog)}) AS p`,
      );
    },
    async start(listener) {
      initializePollingMessageListener(
        config,
        { handle: async ({ payload }) => listener(payload) },
        logger,
        // By default the first batches are of one message, as many as a batch has messages.
        everyBatchFull ? { batchSizeStrategy: async () => settings.nextMessagesBatchSize } : {},
      );
    },
    async enqueuer() {
      const store = initializeMessageStorage(config, logger);
      return async (payload) => {
        const client = await pool.connect();
        try {
          await client.query('BEGIN');
          await client.query(BUSINESS_INSERT, [payload.text]);
          const message = {
            id: crypto.randomUUID(),
            aggregateType: 'bench',
            aggregateId: String(payload.n),
            messageType: 'event',
            concurrency: 'parallel',
            payload,
            createdAt: new Date().toISOString(),
          };
          await store(message, client);
          await client.query('COMMIT');
        } finally {
          client.release();
        }
      };
    },
  };
}
