/** pg-boss: a job queue. A job that is done is kept until its retention ends. */
import pg from 'pg';
import { PgBoss } from 'pg-boss';
import { BUSINESS_INSERT, BUSINESS_TABLE } from './sql.ts';
import { FILLER } from './contender.ts';

const QUEUE = 'event';
const CHUNK = 5_000;

/**
 * @param {string} url
 * @param {{ work: object, boss?: object, notify?: boolean }} options
 * @returns {import('./contender.ts').Contender}
 */
export function create(url, { work, boss: settings = {}, notify = false }) {
  const pool = new pg.Pool({ connectionString: url, max: 10 });
  pool.on('error', () => {});
  let opened;
  const open = async () => {
    opened ??= (async () => {
      const boss = new PgBoss({ connectionString: url, useListenNotify: notify, ...settings });
      boss.on('error', console.error);
      await boss.start();
      return boss;
    })();
    return opened;
  };
  return {
    table: 'pgboss.job',
    openSql: `SELECT EXISTS (SELECT FROM pgboss.job WHERE name = '${QUEUE}' AND state < 'completed') AS open`,
    async prepare() {
      const boss = await open();
      await boss.createQueue(QUEUE, { notify });
      await pool.query(BUSINESS_TABLE);
    },
    async fill({ count, slowEvery }) {
      const boss = await open();
      for (let from = 1; from <= count; from += CHUNK) {
        const numbers = Array.from(
          { length: Math.min(CHUNK, count - from + 1) },
          (_, i) => from + i,
        );
        const isSlow = (n) => slowEvery > 0 && n % slowEvery === 1 % slowEvery;
        await boss.insert(
          QUEUE,
          numbers.map((n) => ({ data: { n, slow: isSlow(n), text: FILLER } })),
        );
      }
    },
    async start(listener) {
      const boss = await open();
      await boss.work(QUEUE, work, async (jobs) => {
        await Promise.all(jobs.map(async ({ data }) => listener(data)));
      });
    },
    async enqueuer() {
      const boss = await open();
      return async (payload) => {
        const client = await pool.connect();
        try {
          await client.query('BEGIN');
          await client.query(BUSINESS_INSERT, [payload.text]);
          await boss.send(QUEUE, payload, {
            db: { executeSql: (text, values) => client.query(text, values) },
          });
          await client.query('COMMIT');
        } finally {
          client.release();
        }
      };
    },
  };
}
