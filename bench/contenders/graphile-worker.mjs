/** graphile-worker: a job queue. A job that is done is deleted. */
import { Logger, makeWorkerUtils, run } from 'graphile-worker';
import pg from 'pg';
import { BUSINESS_INSERT, BUSINESS_TABLE, payloadsSql } from './sql.ts';

const logger = new Logger(() => (level, message) => {
  if (level === 'error') console.error(message);
});

/**
 * @param {string} url
 * @param {object} options the worker's part of a graphile preset
 * @returns {import('./contender.ts').Contender}
 */
export function create(url, options) {
  const pool = new pg.Pool({ connectionString: url, max: 10 });
  pool.on('error', () => {});
  return {
    table: 'graphile_worker._private_jobs',
    openSql: 'SELECT EXISTS (SELECT FROM graphile_worker.jobs) AS open',
    async prepare() {
      const utils = await makeWorkerUtils({ connectionString: url, logger });
      await utils.migrate();
      await utils.release();
      await pool.query(BUSINESS_TABLE);
    },
    async fill(backlog) {
      await pool.query(
        `SELECT count(*) FROM graphile_worker.add_jobs(ARRAY(
           SELECT json_populate_record(null::graphile_worker.job_spec, json_build_object(
             'identifier', CASE WHEN (payload ->> 'slow')::boolean THEN 'slow' ELSE 'event' END, 'payload', payload))
           FROM (${payloadsSql(backlog)}) AS p ORDER BY n))`,
      );
    },
    async start(listener) {
      const task = async (payload) => listener(payload);
      await run({
        preset: { worker: { connectionString: url, logger, ...options } },
        taskList: { event: task, slow: task },
        noHandleSignals: true,
      });
    },
    async enqueuer() {
      return async (payload) => {
        const client = await pool.connect();
        try {
          await client.query('BEGIN');
          await client.query(BUSINESS_INSERT, [payload.text]);
          await client.query('SELECT graphile_worker.add_job($1, $2)', ['event', payload]);
          await client.query('COMMIT');
        } finally {
          client.release();
        }
      };
    },
  };
}
