import {
  toGateState,
  toSentinel,
  type GateStateRow,
  type SentinelRow,
} from '../postgres/sentinel-rows.js';
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
import { isLostAnswer, type Expected, type RpcAnswer, type SupabaseRpc } from './supabase-rpc.js';

/**
 * What names a lease changes nothing the second time, and what only reads never does: tried again also when an answer
 * was lost.
 */
const REPEATABLE = true;

/**
 * Again, a claim would find its own lease and say "running", and a reopen would forget failures that have come since: a
 * lost answer is an error.
 */
const ONCE = false;

const YES_OR_NO = {
  isAnswer: (answer: unknown) => typeof answer === 'boolean',
  wanted: 'true or false',
};
const A_COUNT = { isAnswer: (answer: unknown) => typeof answer === 'number', wanted: 'a count' };
const SENTINELS = {
  isAnswer: (answer: unknown) => Array.isArray(answer) && answer.every((row) => has(row, 'key')),
  wanted: 'a list of sentinels',
};

/** Sentinels in a Supabase project, over its Data API: every verb is one call of a function in `migrations/`. */
export class SupabaseSentinelStore extends SentinelStore {
  constructor(private readonly rpc: SupabaseRpc) {
    super();
  }

  async claim(request: SentinelClaimRequest): Promise<SentinelClaim> {
    const args = {
      ...leaseArgs(request),
      heed_stamp: request.heedStamp,
      lease_ms: request.leaseMs,
    };
    try {
      const { data } = await this.rpc.call('sentinel_claim', args, {
        repeatable: ONCE,
        ...anObjectWith('answer'),
      });
      const claim = data as Omit<SentinelClaim, 'sentinel'> & { sentinel: SentinelRow };
      return { ...claim, sentinel: toSentinel(claim.sentinel) };
    } catch (error) {
      // It may have been claimed, and nobody would ever end it: it would keep others away, and then count as a death.
      if (isLostAnswer(error)) await this.release(request).catch(() => {});
      throw error;
    }
  }

  async renew(lease: GateLease, leaseMs: number): Promise<boolean> {
    const { data } = await this.change(
      'renew',
      { ...leaseArgs(lease), lease_ms: leaseMs },
      YES_OR_NO,
    );
    return data === true;
  }

  async stamp(lease: GateLease, stamped: boolean): Promise<boolean> {
    const args = { ...leaseArgs(lease), stamped };
    const { data, afterLostAnswer } = await this.change('stamp', args, YES_OR_NO);
    if (data === true || !afterLostAnswer) return data === true;
    // An earlier try has ended the lease, or somebody else has it. Who claims to be stamped must be: that is looked up.
    return !stamped || ((await this.find(lease))?.stampedAt ?? null) !== null;
  }

  async fail(lease: GateLease, failure: SentinelFailure): Promise<Sentinel | null> {
    const { failures, sameFailures, error, kind, closeMs } = failure;
    const { data, afterLostAnswer } = await this.change(
      'fail_as_json',
      {
        ...leaseArgs(lease),
        failures,
        same_failures: sameFailures,
        error,
        kind,
        close_ms: closeMs,
      },
      anObjectWith('sentinel'),
    );
    const { sentinel } = data as { sentinel: SentinelRow | null };
    if (sentinel !== null) return toSentinel(sentinel);
    // What the first try may have done is taken for done: nobody is told that the lease was lost.
    return afterLostAnswer ? this.find(lease) : null;
  }

  async release(lease: GateLease): Promise<boolean> {
    const { data, afterLostAnswer } = await this.change('release', leaseArgs(lease), YES_OR_NO);
    return data === true || afterLostAnswer;
  }

  async reopen(key: string, version: string | undefined): Promise<number> {
    const args = { key, version: version ?? null };
    const { data } = await this.rpc.call('sentinel_reopen', args, { repeatable: ONCE, ...A_COUNT });
    return data as number;
  }

  async list({ key, failing, limit }: SentinelFilter): Promise<GateState[]> {
    const args = { key: key ?? null, only_failing: failing ?? false, batch_size: limit };
    const { data } = await this.rpc.call('sentinel_list', args, {
      repeatable: REPEATABLE,
      ...SENTINELS,
    });
    return (data as GateStateRow[]).map(toGateState);
  }

  async stats(): Promise<SentinelStats> {
    const { data } = await this.rpc.call(
      'sentinel_stats',
      {},
      { repeatable: REPEATABLE, ...anObjectWith('failing') },
    );
    return data as SentinelStats;
  }

  /** Changes what a lease names. */
  private async change(verb: string, args: object, shape: Shape): Promise<RpcAnswer> {
    return this.rpc.call(`sentinel_${verb}`, args, { repeatable: REPEATABLE, ...shape });
  }
}

type Shape = Omit<Expected, 'repeatable'>;

function anObjectWith(name: string): Shape {
  return { isAnswer: (answer) => has(answer, name), wanted: `an object with "${name}"` };
}

function has(answer: unknown, name: string): boolean {
  return typeof answer === 'object' && answer !== null && name in answer;
}

function leaseArgs({ key, version, leaseToken }: GateLease): object {
  return { key, version, lease_token: leaseToken };
}
