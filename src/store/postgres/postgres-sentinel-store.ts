import {
  SentinelStore,
  type GateLease,
  type GateState,
  type Sentinel,
  type SentinelClaim,
  type SentinelClaimRequest,
  type SentinelFailure,
  type SentinelFilter,
  type SentinelStats,
} from '../sentinel-store.js';
import { AS_TEXT, ask, type PgPool } from './pg-pool.js';
import { toGateState, toSentinel, type GateStateRow, type SentinelRow } from './sentinel-rows.js';
import type { SqlNames } from './sql-names.js';

/** Sentinels in PostgreSQL. Every verb is one call of the function of the same name in `migrations/`. */
export class PostgresSentinelStore extends SentinelStore {
  constructor(
    private readonly pool: PgPool,
    private readonly names: SqlNames,
  ) {
    super();
  }

  async claim(request: SentinelClaimRequest): Promise<SentinelClaim> {
    const { key, version, heedStamp, leaseToken, leaseMs } = request;
    const { sentinel, ...answer } = (await this.call(
      'claim',
      '$1, $2, $3, $4, $5',
      [key, version, heedStamp, leaseToken, leaseMs],
      // Answered when nobody waited any more: nobody would ever end it.
      (late) => {
        if ((late as SentinelClaim).answer === 'claimed')
          void this.release(request).catch(() => {});
      },
    )) as Omit<SentinelClaim, 'sentinel'> & { sentinel: SentinelRow };
    return { ...answer, sentinel: toSentinel(sentinel) };
  }

  async renew(lease: GateLease, leaseMs: number): Promise<boolean> {
    return (await this.call('renew', '$1, $2, $3, $4', [...values(lease), leaseMs])) === true;
  }

  async stamp(lease: GateLease, stamped: boolean): Promise<boolean> {
    return (await this.call('stamp', '$1, $2, $3, $4', [...values(lease), stamped])) === true;
  }

  async fail(lease: GateLease, failure: SentinelFailure): Promise<Sentinel | null> {
    const { failures, sameFailures, error, kind, closeMs } = failure;
    const row = await this.call('fail', '$1, $2, $3, $4, $5, $6, $7, $8', [
      ...values(lease),
      failures,
      sameFailures,
      error,
      kind,
      closeMs,
    ]);
    return row === null ? null : toSentinel(row as SentinelRow);
  }

  async release(lease: GateLease): Promise<boolean> {
    return (await this.call('release', '$1, $2, $3', values(lease))) === true;
  }

  async reopen(key: string, version: string | undefined): Promise<number> {
    return (await this.call('reopen', '$1, $2', [key, version ?? null])) as number;
  }

  async list({ key, failing, limit }: SentinelFilter): Promise<GateState[]> {
    const rows = await this.call('list', '$1, $2, $3', [key ?? null, failing ?? false, limit]);
    return (rows as GateStateRow[]).map(toGateState);
  }

  async stats(): Promise<SentinelStats> {
    return (await this.call('stats', '', [])) as SentinelStats;
  }

  private async call(
    verb: string,
    parameters: string,
    given: unknown[],
    onLate?: (answer: unknown) => void,
  ): Promise<unknown> {
    const { rows } = await ask(
      this.pool,
      {
        text: `SELECT to_jsonb(${this.names.qualified(`sentinel_${verb}`)}(${parameters})) AS answer`,
        values: given,
        types: AS_TEXT,
      },
      (late) => onLate?.(answerOf(late)),
    );
    return answerOf(rows);
  }
}

function values({ key, version, leaseToken }: GateLease): unknown[] {
  return [key, version, leaseToken];
}

function answerOf(rows: unknown[]): unknown {
  const { answer } = rows[0] as { answer: string | null };
  return answer === null ? null : (JSON.parse(answer) as unknown);
}
