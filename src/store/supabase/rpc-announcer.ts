import { channelOf } from '../postgres/pg-wake-channel.js';
import type { SqlNames } from '../postgres/sql-names.js';
import type { SupabaseRpc } from './supabase-rpc.js';

/** Wakes relays that listen on PostgreSQL, from a process that cannot: over the Data API. One call at a time. */
export class RpcAnnouncer {
  private calling = false;
  private again = false;
  private closed = false;

  constructor(
    private readonly rpc: SupabaseRpc,
    private readonly names: SqlNames,
  ) {}

  announce(): void {
    if (this.closed) return;
    this.again = true;
    if (!this.calling) void this.call();
  }

  listen(): void {
    // Nothing can be heard over HTTP: this process has its tick.
  }

  async close(): Promise<void> {
    this.closed = true;
  }

  private async call(): Promise<void> {
    this.calling = true;
    while (this.again && !this.closed) {
      this.again = false;
      // What fails here is found by the tick.
      await this.rpc
        .call(
          'announce_as_json',
          { channel: channelOf(this.names) },
          { repeatable: false, isAnswer: (answer) => answer !== null, wanted: 'an object' },
        )
        .catch(() => {});
    }
    this.calling = false;
  }
}
