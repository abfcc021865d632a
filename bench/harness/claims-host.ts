/**
 * node bench/harness/claims-host.ts <ignored> <url> <options as JSON>
 *
 * Claims and settles batch after batch and times the claims alone: no relay, no listeners.
 */
import { EventEmitterModule } from '@nestjs/event-emitter';
import { NestFactory } from '@nestjs/core';
import pg from 'pg';
import 'reflect-metadata';
import { AppModule } from '../contenders/app-module.ts';
import { outboxPackage } from '../contenders/outbox-package.ts';
import { serve } from './remote.ts';

export type ClaimKind = 'id-in' | 'outbox';

export interface ClaimRequest {
  readonly batch: number;
  readonly times: number;
}

interface Claims {
  claim(batch: number): Promise<{ settle: () => Promise<unknown> }>;
}

const [, url = '', options = '{}'] = process.argv.slice(2);
const { kind } = JSON.parse(options) as { kind: ClaimKind };
const claims = kind === 'outbox' ? await byTheStore() : await byHand();

serve({
  /** Milliseconds of each claim. */
  async claim({ batch, times }: ClaimRequest): Promise<number[]> {
    const took: number[] = [];
    for (let i = 0; i < times; i++) {
      const before = performance.now();
      const { settle } = await claims.claim(batch);
      took.push(performance.now() - before);
      await settle();
    }
    return took;
  },
});

async function byTheStore(): Promise<Claims> {
  const { OutboxModule, OutboxStore } = outboxPackage;
  const app = await NestFactory.createApplicationContext(
    {
      module: AppModule,
      imports: [
        EventEmitterModule.forRoot(),
        OutboxModule.forRoot({ connectionString: url, relay: false }),
      ],
    },
    { logger: ['error', 'warn'] },
  );
  const store = app.get(OutboxStore);
  return {
    async claim(limit) {
      const events = await store.claim({ limit, leaseMs: 60_000 });
      const settlements = events.map(({ id, leaseToken }) => ({
        id,
        leaseToken,
        outcome: 'completed' as const,
      }));
      return { settle: () => store.settle(settlements) };
    },
  };
}

/** As most write it, without a lease. */
async function byHand(): Promise<Claims> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return {
    async claim(batch) {
      const { rows } = await client.query<{ id: string }>({
        name: 'claim',
        text: `UPDATE outbox_events SET status = 'PROCESSING'
               WHERE id IN (SELECT id FROM outbox_events WHERE status = 'PENDING' AND scheduled_at <= now()
                            ORDER BY scheduled_at LIMIT $1 FOR UPDATE SKIP LOCKED)
               RETURNING *`,
        values: [batch],
      });
      return {
        settle: () =>
          client.query({
            name: 'settle',
            text: `UPDATE outbox_events SET status = 'COMPLETED', processed_at = now() WHERE id = ANY ($1::uuid[])`,
            values: [rows.map(({ id }) => id)],
          }),
      };
    },
  };
}
