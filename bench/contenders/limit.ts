/**
 * What PostgreSQL allows: hand-written SQL in a bare `pg` loop. It retries nothing, survives no crash and knows no
 * listeners; it is what everything else is measured against.
 */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import type {
  Backlog,
  BenchPayload,
  Contender,
  EnqueueInTransaction,
  Listener,
} from './contender.ts';
import { BUSINESS_INSERT, BUSINESS_TABLE, dueSql, payloadsSql } from './sql.ts';
import { outboxSql } from './outbox-package.ts';

export interface LimitOptions {
  readonly batch: number;
  readonly loops: number;
  /**
   * `joined`: the last batch is settled and the next claimed in one statement, by ctid. `apart`: two statements as
   * most would write them. `seed`: one event at a time, three statements.
   */
  readonly shape: 'joined' | 'apart' | 'seed';
  /** `seed`: the seed's columns and its one partial index. `outbox`: this library's table, its checks and five indexes. */
  readonly table: 'seed' | 'outbox';
  /** Sleep on LISTEN when nothing is due. */
  readonly listen?: boolean;
}

const SEED_TABLE = `
  CREATE TABLE public.outbox_events (
    id UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    event_type VARCHAR(255) NOT NULL,
    payload JSONB NOT NULL,
    metadata JSONB DEFAULT '{}'::jsonb,
    status VARCHAR(50) DEFAULT 'PENDING',
    retry_count INTEGER DEFAULT 0,
    last_error TEXT,
    created_at TIMESTAMPTZ DEFAULT now(),
    processed_at TIMESTAMPTZ,
    scheduled_at TIMESTAMPTZ DEFAULT now()
  );
  CREATE INDEX idx_outbox_events_status_scheduled ON public.outbox_events (status, scheduled_at) WHERE status = 'PENDING'`;

const DUE = `SELECT ctid FROM outbox_events WHERE status = 'PENDING' AND scheduled_at <= now()
             ORDER BY scheduled_at LIMIT $2 FOR UPDATE SKIP LOCKED`;
const COLUMNS = 'id, event_type, payload, metadata, retry_count';

const JOINED = {
  seed: {
    name: 'joined',
    text: `WITH settled AS (
             UPDATE outbox_events SET status = 'COMPLETED', processed_at = now() WHERE id = ANY ($1::uuid[]))
           UPDATE outbox_events SET status = 'PROCESSING' WHERE ctid = ANY (ARRAY(${DUE})) RETURNING ${COLUMNS}`,
  },
  outbox: {
    name: 'joined-fenced',
    text: `WITH settled AS (
             UPDATE outbox_events SET status = 'COMPLETED', processed_at = now(), lease_token = NULL, leased_until = NULL
             WHERE id = ANY ($1::uuid[]) AND lease_token = $3)
           UPDATE outbox_events SET status = 'PROCESSING', lease_token = $4, leased_until = now() + interval '60 s'
           WHERE ctid = ANY (ARRAY(${DUE})) RETURNING ${COLUMNS}`,
  },
} as const;

const APART = {
  claim: {
    name: 'claim',
    text: `UPDATE outbox_events SET status = 'PROCESSING'
           WHERE id IN (SELECT id FROM outbox_events WHERE status = 'PENDING' AND scheduled_at <= now()
                        ORDER BY scheduled_at LIMIT $1 FOR UPDATE SKIP LOCKED)
           RETURNING *`,
  },
  settle: {
    name: 'settle',
    text: `UPDATE outbox_events SET status = 'COMPLETED', processed_at = now() WHERE id = ANY ($1::uuid[])`,
  },
} as const;

interface Row {
  readonly id: string;
  readonly payload: BenchPayload;
}

/** One step of a loop. @returns how many events it delivered */
type Step = (client: pg.ClientBase, listener: Listener) => Promise<number>;

export function create(url: string, options: LimitOptions): Contender {
  const { batch, loops, shape, table: columns, listen = false } = options;
  const pool = new pg.Pool({ connectionString: url, max: Math.max(loops, 1) + 2 });
  pool.on('error', () => {});
  const times: number[] = [];
  let notified = false;
  let wake = (): void => {};

  async function timed<T>(claim: () => Promise<T>): Promise<T> {
    const before = performance.now();
    const answer = await claim();
    times.push(performance.now() - before);
    return answer;
  }

  function joined(): Step {
    let done: string[] = [];
    let token: string | null = null;
    return async (client, listener) => {
      const next = randomUUID();
      const values = columns === 'seed' ? [done, batch] : [done, batch, token, next];
      const { rows } = await timed(() =>
        client.query<Row>({ ...JOINED[columns], values: values as unknown[] }),
      );
      await Promise.all(rows.map(async ({ payload }) => listener(payload)));
      done = rows.map(({ id }) => id);
      token = next;
      return rows.length;
    };
  }

  const apart: Step = async (client, listener) => {
    const { rows } = await timed(() => client.query<Row>({ ...APART.claim, values: [batch] }));
    if (rows.length === 0) return 0;
    await Promise.all(rows.map(async ({ payload }) => listener(payload)));
    await client.query({ ...APART.settle, values: [rows.map(({ id }) => id)] });
    return rows.length;
  };

  const seed: Step = async (client, listener) => {
    const { rows } = await client.query<Row>(
      `SELECT * FROM outbox_events WHERE status = 'PENDING' AND scheduled_at <= now() ORDER BY scheduled_at LIMIT $1`,
      [batch],
    );
    for (const { id, payload } of rows) {
      await client.query(`UPDATE outbox_events SET status = 'PROCESSING' WHERE id = $1`, [id]);
      await listener(payload);
      await client.query(
        `UPDATE outbox_events SET status = 'COMPLETED', processed_at = now() WHERE id = $1`,
        [id],
      );
    }
    return rows.length;
  };

  async function loop(listener: Listener): Promise<void> {
    const client = await pool.connect();
    const step = shape === 'joined' ? joined() : shape === 'apart' ? apart : seed;
    try {
      // One step more than there are batches: the joined shape settles the last batch with it.
      for (let before = 1; ;) {
        const delivered = await step(client, listener);
        if (delivered === 0 && before === 0) {
          if (!listen) return;
          if (!notified) await new Promise<void>((resolve) => (wake = resolve));
          notified = false;
        }
        before = delivered;
      }
    } finally {
      client.release();
    }
  }

  return {
    table: 'outbox_events',
    openSql: `SELECT EXISTS (SELECT FROM outbox_events WHERE status IN ('PENDING', 'PROCESSING')) AS open`,
    async prepare() {
      await pool.query(columns === 'seed' ? SEED_TABLE : await outboxSql());
      await pool.query(BUSINESS_TABLE);
    },
    async fill(backlog: Backlog) {
      await pool.query(
        `INSERT INTO outbox_events (event_type, payload, scheduled_at)
         SELECT 'bench.event', payload, ${dueSql(backlog.count)} FROM (${payloadsSql(backlog)}) AS p ORDER BY n`,
      );
    },
    async start(listener) {
      if (listen) {
        const listening = await pool.connect();
        listening.on('notification', () => {
          notified = true;
          wake();
        });
        await listening.query('LISTEN bench');
      }
      for (let i = 0; i < loops; i++) void loop(listener);
    },
    async enqueuer(): Promise<EnqueueInTransaction> {
      return async (payload) => {
        const client = await pool.connect();
        try {
          await client.query('BEGIN');
          await client.query(BUSINESS_INSERT, [payload.text]);
          await client.query('INSERT INTO outbox_events (event_type, payload) VALUES ($1, $2)', [
            'bench.event',
            payload,
          ]);
          await client.query('NOTIFY bench');
          await client.query('COMMIT');
        } finally {
          client.release();
        }
      };
    },
    claimTimes: () => times,
  };
}
