import { randomUUID } from 'node:crypto';
import { invalid } from '../../event/outbox-error.js';
import {
  OutboxStore,
  type ClaimRequest,
  type ClaimedEvent,
  type DeadLetterFilter,
  type DeadLetterPage,
  type DeadLetterPageRequest,
  type EventPage,
  type EventPageRequest,
  type Lease,
  type NewEvent,
  type OutboxStats,
  type PruneRequest,
  type RedriveRequest,
  type SettledAndClaimed,
  type Settlement,
  type SqlExecutor,
  type StoredEvent,
} from '../outbox-store.js';
import { readCursor, writeCursor } from '../page-cursor.js';
import { CalledActivityStore } from '../postgres/called-activity-store.js';
import {
  toClaimedEvent,
  toDeadLetter,
  toEventPage,
  toStoredEvent,
  type ClaimedJson,
  type EventListJson,
  type StoredJson,
} from '../postgres/event-json.js';
import {
  newEventRecords,
  settlementRecords,
  toStats,
  type StatsRow,
} from '../postgres/event-rows.js';
import { LowWater } from '../postgres/low-water.js';
import { assertVersion, outboxIsMissing } from '../postgres/schema-version.js';
import type { SqlNames } from '../postgres/sql-names.js';
import { SupabaseCallError } from './rpc-failure.js';
import { isLostAnswer, type SupabaseRpc } from './supabase-rpc.js';
import { SupabaseSentinelStore } from './supabase-sentinel-store.js';

/** Done twice is as good as done once, so it is tried again also when an answer was lost. */
const REPEATABLE = true;

const A_COUNT_OR_LIST = {
  isAnswer: (answer: unknown) => typeof answer === 'number' || Array.isArray(answer),
  wanted: 'a count or a list',
};

/**
 * Again, it would take, revive or delete others: a lost answer is an error. What a lost claim has taken waits for the
 * reaper, as after a crash.
 */
const ONCE = false;

/**
 * Events in a Supabase project, over its Data API: every verb is one call of a function in `migrations/`, and one
 * request is one transaction. What is enqueued in a caller's transaction is enqueued there, by SQL: see
 * docs/supabase.md.
 */
export class SupabaseOutboxStore extends OutboxStore {
  override readonly sentinels: SupabaseSentinelStore;
  override readonly activity: CalledActivityStore;
  private readonly lowWater = new LowWater();

  /** @param onClose ends what was opened beside the store */
  constructor(
    private readonly rpc: SupabaseRpc,
    private readonly names: SqlNames,
    private readonly onClose: () => Promise<void> = async () => {},
  ) {
    super();
    this.sentinels = new SupabaseSentinelStore(rpc);
    this.activity = new CalledActivityStore(async (verb, args) => {
      const { data } = await rpc.call(verb, args, { repeatable: REPEATABLE, ...A_COUNT_OR_LIST });
      return data;
    });
  }

  async enqueue(events: readonly NewEvent[], executor?: SqlExecutor): Promise<string[]> {
    if (executor !== undefined) {
      throw invalid(
        'tx cannot be used with Supabase, where each request is a transaction of its own: enqueue in a database function ' +
          `of yours with ${this.names.prefix}_enqueue(event_type, payload) and call that with supabase.rpc(…), or give the outbox a ` +
          'pg pool instead of supabase',
      );
    }
    // The ids are the caller's, so a repeat finds what an earlier try has written and writes the rest.
    const ids = events.map(({ id }) => id.toLowerCase());
    const written = await this.ids(
      'enqueue',
      { events: newEventRecords(events) },
      REPEATABLE,
      () => ids,
    );
    await this.assertThere(ids.find((id) => !written.includes(id)));
    return written;
  }

  /**
   * An event that was not written was there already. A wrong host that answers an empty list would say the same of
   * every event, so one of them is looked up.
   */
  private async assertThere(id: string | undefined): Promise<void> {
    if (id === undefined || (await this.find(id)) !== null) return;
    throw new Error(
      `the Data API says that event ${id} was there already, and it is not: is supabase.url right, and no proxy between?`,
    );
  }

  async claim({ limit, leaseMs }: ClaimRequest): Promise<ClaimedEvent[]> {
    return this.take('claim', { batch_size: limit, lease_ms: leaseMs, not_before: null });
  }

  async claimOthers({
    limit,
    leaseMs,
    otherThan,
  }: ClaimRequest & { otherThan: readonly string[] }): Promise<ClaimedEvent[]> {
    return this.take('claim_others', {
      other_than: otherThan,
      batch_size: limit,
      lease_ms: leaseMs,
    });
  }

  async reap({ limit, leaseMs }: ClaimRequest): Promise<ClaimedEvent[]> {
    return this.take('reap', { batch_size: limit, lease_ms: leaseMs });
  }

  async settle(settlements: readonly Settlement[]): Promise<string[]> {
    if (settlements.length === 0) return [];
    return this.ids('settle', { settlements: settlementRecords(settlements) }, REPEATABLE, () =>
      settlements.map(({ id }) => id),
    );
  }

  async settleAndClaim(
    settlements: readonly Settlement[],
    claim: ClaimRequest | null,
  ): Promise<SettledAndClaimed> {
    try {
      return await this.exchange(settlements, claim);
    } catch (error) {
      if (!isLostAnswer(error) || settlements.length === 0) throw error;
      // Settling is safe to repeat, claiming is not.
      const settled = new Set(await this.settle(settlements));
      return { settled, claimed: [], lookedEverywhere: false };
    }
  }

  async renew(leases: readonly Lease[], leaseMs: number): Promise<string[]> {
    if (leases.length === 0) return [];
    const records = leases.map(({ id, leaseToken }) => ({ id, lease_token: leaseToken }));
    return this.ids('renew', { leases: records, lease_ms: leaseMs }, REPEATABLE);
  }

  async redrive(request: RedriveRequest): Promise<string[]> {
    const { limit, firstDelayMs, spacingMs } = request;
    return this.ids(
      'redrive',
      {
        ...filterArgs(request),
        batch_size: limit,
        first_delay_ms: firstDelayMs,
        spacing_ms: spacingMs,
      },
      ONCE,
    );
  }

  async discard(request: DeadLetterFilter & { limit: number }): Promise<string[]> {
    return this.ids('discard', { ...filterArgs(request), batch_size: request.limit }, ONCE);
  }

  async prune({ status, olderThanMs, limit }: PruneRequest): Promise<number> {
    const { data } = await this.rpc.call(
      'prune',
      { of_status: status, older_than_ms: olderThanMs, batch_size: limit },
      {
        repeatable: REPEATABLE,
        isAnswer: (answer) => typeof answer === 'number',
        wanted: 'a count',
      },
    );
    return data as number;
  }

  async deadLetters(request: DeadLetterPageRequest): Promise<DeadLetterPage> {
    const [time, id] = readCursor(request.after);
    // One row more than the page, to know whether there is another page.
    const { events } = await this.object<'events', StoredJson[]>(
      'dead_letters_as_json',
      {
        ...filterArgs(request),
        before_time: time,
        before_id: id,
        page_size: request.limit + 1,
      },
      'events',
      REPEATABLE,
    );
    const page = events.slice(0, request.limit);
    const last = page.at(-1);
    return {
      items: page.map(toDeadLetter),
      next:
        events.length > request.limit && last !== undefined
          ? writeCursor(last.processed_at ?? '', last.id)
          : null,
    };
  }

  async countDeadLetters(filter: DeadLetterFilter): Promise<number> {
    const { total } = await this.object<'total', number>(
      'count_dead_letters_as_json',
      filterArgs(filter),
      'total',
      REPEATABLE,
    );
    return total;
  }

  async list(request: EventPageRequest): Promise<EventPage> {
    const [time, id] = readCursor(request.after);
    const page = await this.object<'events', EventListJson['events']>(
      'list',
      {
        of_state: request.state,
        of_type: request.eventType ?? null,
        after_time: time,
        after_id: id,
        page_size: request.limit + 1,
      },
      'events',
      REPEATABLE,
    );
    return toEventPage(page, request.limit);
  }

  async find(id: string): Promise<StoredEvent | null> {
    const { events } = await this.object<'events', StoredJson[]>(
      'find_as_json',
      { event_id: id },
      'events',
      REPEATABLE,
    );
    return events[0] === undefined ? null : toStoredEvent(events[0]);
  }

  async stats(): Promise<OutboxStats> {
    const row = await this.object<'due', number>('stats', {}, 'due', REPEATABLE);
    return toStats(row as unknown as StatsRow);
  }

  async check(): Promise<void> {
    try {
      const { version, breaks_before: breaksBefore } = await this.object<
        'version' | 'breaks_before',
        number
      >('version_as_json', {}, 'version', REPEATABLE);
      assertVersion({ version, breaksBefore }, this.names);
    } catch (error) {
      if (!(error instanceof SupabaseCallError) || error.code !== 'PGRST202') throw error;
      throw outboxIsMissing(this.names, error);
    }
  }

  async close(): Promise<void> {
    await this.onClose();
  }

  private async exchange(
    settlements: readonly Settlement[],
    claim: ClaimRequest | null,
  ): Promise<SettledAndClaimed> {
    const completed = settlements.filter(({ outcome }) => outcome === 'completed');
    const others = settlements.filter(({ outcome }) => outcome !== 'completed');
    const leaseToken = randomUUID();
    const notBeforeMs = claim === null ? null : this.lowWater.next();
    const { claimed: rows, lost } = await this.object<'claimed', ClaimedJson[], { lost: string[] }>(
      'settle_and_claim_as_json',
      {
        completed: completed.map(({ id }) => id),
        tokens: completed.map((settlement) => settlement.leaseToken),
        settlements: settlementRecords(others),
        batch_size: claim?.limit ?? 0,
        lease_ms: claim?.leaseMs ?? 0,
        new_lease_token: leaseToken,
        not_before: notBeforeMs === null ? null : new Date(notBeforeMs).toISOString(),
      },
      'claimed',
      ONCE,
    );
    const settled = new Set(settlements.map(({ id }) => id));
    for (const id of lost) settled.delete(id);
    const claimed = rows.map((row) => toClaimedEvent(row, leaseToken));
    this.lowWater.claimed(claimed);
    return { settled, claimed, lookedEverywhere: notBeforeMs === null };
  }

  private async take(verb: string, args: object): Promise<ClaimedEvent[]> {
    const leaseToken = randomUUID();
    const { claimed } = await this.object<'claimed', ClaimedJson[]>(
      `${verb}_as_json`,
      { ...args, new_lease_token: leaseToken },
      'claimed',
      ONCE,
    );
    return claimed.map((row) => toClaimedEvent(row, leaseToken));
  }

  /**
   * @param assumed what is answered when an earlier try got no answer, and a later one cannot tell what that one has
   * done from what somebody else has. Absent: the later try's own answer.
   */
  private async ids(
    verb: string,
    args: object,
    repeatable: boolean,
    assumed?: () => string[],
  ): Promise<string[]> {
    const { data, afterLostAnswer } = await this.rpc.call(verb, args, {
      repeatable,
      isAnswer: isTexts,
      wanted: 'a list of ids',
    });
    return afterLostAnswer && assumed !== undefined ? assumed() : (data as string[]);
  }

  private async object<Key extends string, Value, More = unknown>(
    verb: string,
    args: object,
    key: Key,
    repeatable: boolean,
  ): Promise<Record<Key, Value> & More> {
    const { data } = await this.rpc.call(verb, args, {
      repeatable,
      isAnswer: (answer) => typeof answer === 'object' && answer !== null && key in answer,
      wanted: `an object with "${key}"`,
    });
    return data as Record<Key, Value> & More;
  }
}

function isTexts(data: unknown): boolean {
  return Array.isArray(data) && data.every((each) => typeof each === 'string');
}

function filterArgs({
  ids,
  eventType,
  matching,
  failedAfter,
  failedBefore,
}: DeadLetterFilter): object {
  return {
    ids: ids ?? null,
    of_type: eventType ?? null,
    matching: matching ?? null,
    failed_after: failedAfter?.toISOString() ?? null,
    failed_before: failedBefore?.toISOString() ?? null,
  };
}
