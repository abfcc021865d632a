import { createHash } from 'node:crypto';
import pg from 'pg';
import { AS_TEXT, ask, ended, type PgPool } from './pg-pool.js';
import type { SqlNames } from './sql-names.js';

// A NOTIFY inside the writing transactions takes a lock that all of them share, and two thirds of the throughput at
// ten writers (docs/benchmarks.md). One after the commit, from another connection, at most every 3 ms, takes nothing.
const ANNOUNCE_EVERY_MS = 3;

const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 30_000;

/** LISTEN and NOTIFY, each on a connection that no business transaction uses. */
export class PgWakeChannel {
  private readonly channel: string;
  private lastAnnounced = -Infinity;
  private announcing: NodeJS.Timeout | undefined;
  private listener: pg.Client | undefined;
  private retry: NodeJS.Timeout | undefined;
  private closed = false;

  /**
   * @param pool for NOTIFY
   * @param clientConfig for the connection that listens: it is held for as long as the process relays. `undefined`
   * where none can: then it only announces
   */
  constructor(
    private readonly pool: PgPool,
    private readonly clientConfig: pg.ClientConfig | undefined,
    names: SqlNames,
  ) {
    this.channel = channelOf(names);
  }

  announce(): void {
    if (this.closed || this.announcing !== undefined) return;
    const waitMs = this.lastAnnounced + ANNOUNCE_EVERY_MS - performance.now();
    if (waitMs <= 0) void this.notify();
    else {
      this.announcing = setTimeout(() => {
        this.announcing = undefined;
        void this.notify();
      }, waitMs).unref();
    }
  }

  listen(onWake: () => void): void {
    if (this.clientConfig === undefined) return;
    void this.keepListening(this.clientConfig, onWake, FIRST_RETRY_MS);
  }

  async close(): Promise<void> {
    this.closed = true;
    clearTimeout(this.announcing);
    clearTimeout(this.retry);
    const { listener } = this;
    if (listener === undefined) return;
    // Should the server not answer any more, the socket must not keep the process alive.
    (listener as { unref?(): void }).unref?.();
    await ended(listener.end());
  }

  private async notify(): Promise<void> {
    this.lastAnnounced = performance.now();
    // What fails here is found by the tick; so it need not wait for the disk either, which would be most of the delay.
    await ask(this.pool, {
      text: `SELECT pg_notify($1, ''), set_config('synchronous_commit', 'off', true)`,
      values: [this.channel],
      types: AS_TEXT,
    }).catch(() => {});
  }

  private async keepListening(
    config: pg.ClientConfig,
    onWake: () => void,
    retryMs: number,
  ): Promise<void> {
    if (this.closed) return;
    const client = new pg.Client(listenerConfig(config));
    this.listener = client;
    let wait = retryMs;
    // `end` comes last, however the connection broke; `error` must be listened to all the same.
    client.on('error', () => void client.end().catch(() => {}));
    client.once('end', () => {
      if (this.closed) return;
      this.retry = setTimeout(
        () => void this.keepListening(config, onWake, Math.min(wait * 2, LONGEST_RETRY_MS)),
        wait,
      ).unref();
    });
    client.on('notification', onWake);
    try {
      await client.connect();
      await client.query(`LISTEN ${client.escapeIdentifier(this.channel)}`);
      wait = FIRST_RETRY_MS;
      // What was announced while nobody listened.
      onWake();
    } catch {
      await client.end().catch(() => {});
    }
  }
}

function listenerConfig(config: pg.ClientConfig): pg.ClientConfig {
  // A pool hides its password from enumeration, and a spread leaves it behind.
  const { password } = config;
  return { ...config, ...(password !== undefined && { password }), keepAlive: true };
}

/** Channels belong to the database and not to a schema, and their names are cut at 63 bytes. */
export function channelOf({ schema, table }: SqlNames): string {
  const name = `${schema}.${table}`;
  if (name.length <= 63) return name;
  return `outbox.${createHash('sha256').update(name).digest('hex').slice(0, 32)}`;
}
