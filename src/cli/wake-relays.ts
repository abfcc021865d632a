import { AS_TEXT, ask } from '../store/postgres/pg-pool.js';
import { channelOf } from '../store/postgres/pg-wake-channel.js';
import type { Database } from './cli.js';

/** Tells the relays that something is due. What fails here is found by their next tick. */
export async function wakeRelays({ pool, names }: Database): Promise<void> {
  await ask(pool, {
    text: `SELECT pg_notify($1, '')`,
    values: [channelOf(names)],
    types: AS_TEXT,
  }).catch(() => {});
}
