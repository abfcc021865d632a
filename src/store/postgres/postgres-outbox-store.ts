import { randomUUID } from 'node:crypto';
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
import {
  CLAIMED_COLUMNS,
  STORED_COLUMNS,
  fromNewEvent,
  fromNewEvents,
  fromSettlements,
  toClaimedEvents,
  toDeadLetter,
  toStats,
  toStoredEvent,
  type StatsRow,
  type TextRow,
} from './event-rows.js';
import { readCursor, writeCursor } from '../page-cursor.js';
import { CalledActivityStore } from './called-activity-store.js';
import { toEventPage, type EventListJson } from './event-json.js';
import { isLostConnection } from './lost-connection.js';
import { LowWater } from './low-water.js';
import { AS_TEXT, ask, type PgPool } from './pg-pool.js';
import { PostgresSentinelStore } from './postgres-sentinel-store.js';
import { assertSchemaVersion } from './schema-version.js';
import type { SqlNames } from './sql-names.js';

/**
 * Events in PostgreSQL. Every verb is one call of the function of the same name in `migrations/`; statements are
 * not prepared by name, so that a pooler in transaction mode serves as well.
 */
export class PostgresOutboxStore extends OutboxStore {
  override readonly sentinels: PostgresSentinelStore;
  override readonly activity: CalledActivityStore;
  private readonly lowWater = new LowWater();

  /** @param onClose ends the pool if it is the store's own */
  constructor(
    private readonly pool: PgPool,
    private readonly names: SqlNames,
    private readonly onClose: () => Promise<void> = async () => {},
  ) {
    super();
    this.sentinels = new PostgresSentinelStore(pool, names);
    this.activity = new CalledActivityStore((verb, args) => this.answer(verb, args));
  }

  async enqueue(events: readonly NewEvent[], executor?: SqlExecutor): Promise<string[]> {
    try {
      return await this.write(events, executor);
    } catch (error) {
      if (executor !== undefined || !isLostConnection(error)) throw error;
      // On another connection: a pool hands out one that was cut a moment ago. What the first try may have written is
      // left as it is, and nobody is told that the event was there already.
      await this.write(events);
      return events.map(({ id }) => id);
    }
  }

  // In and out it is text, whatever runs this: a driver that knows the parameter is JSON would encode it once more,
  // and the caller's connection names and parses columns as the caller likes.
  private async write(events: readonly NewEvent[], executor?: SqlExecutor): Promise<string[]> {
    const [event] = events;
    if (event !== undefined && events.length === 1) return this.enqueueOne(event, executor);
    const text = `SELECT array_to_json(${this.names.qualified('enqueue')}($1::text::jsonb))::text AS ids`;
    const ids = await this.value(text, [fromNewEvents(events)], executor);
    return JSON.parse(ids ?? '[]') as string[];
  }

  private async enqueueOne(event: NewEvent, executor?: SqlExecutor): Promise<string[]> {
    const verb = this.names.qualified('enqueue_one');
    const text = `SELECT ${verb}($1::text::uuid, $2, $3::text::jsonb, $4::text::jsonb, $5::text::timestamptz, $6::text::float8)::text AS written`;
    const written = await this.value(text, fromNewEvent(event), executor);
    return written === 'true' ? [event.id] : [];
  }

  async claim({ limit, leaseMs }: ClaimRequest): Promise<ClaimedEvent[]> {
    return this.take('claim', '$2, $3, $1, NULL', [limit, leaseMs]);
  }

  async claimOthers({
    limit,
    leaseMs,
    otherThan,
  }: ClaimRequest & { otherThan: readonly string[] }): Promise<ClaimedEvent[]> {
    return this.take('claim_others', '$4, $2, $3, $1', [limit, leaseMs, otherThan]);
  }

  async reap({ limit, leaseMs }: ClaimRequest): Promise<ClaimedEvent[]> {
    return this.take('reap', '$2, $3, $1', [limit, leaseMs]);
  }

  async settle(settlements: readonly Settlement[]): Promise<string[]> {
    if (settlements.length === 0) return [];
    return this.call('settle', [fromSettlements(settlements)]);
  }

  async settleAndClaim(
    settlements: readonly Settlement[],
    claim: ClaimRequest | null,
  ): Promise<SettledAndClaimed> {
    const completed = settlements.filter(({ outcome }) => outcome === 'completed');
    const others = settlements.filter(({ outcome }) => outcome !== 'completed');
    const leaseToken = randomUUID();
    const notBeforeMs = claim === null ? null : this.lowWater.next();
    const rows = await this.query(
      `SELECT ${CLAIMED_COLUMNS}, lost
       FROM ${this.names.qualified('settle_and_claim')}($1, $2, $3, $4, $5, $6, to_timestamp($7::float8 / 1000))`,
      [
        uuidArray(completed.map(({ id }) => id)),
        uuidArray(completed.map((settlement) => settlement.leaseToken)),
        fromSettlements(others),
        claim?.limit ?? 0,
        claim?.leaseMs ?? 0,
        leaseToken,
        notBeforeMs,
      ],
      (late) => this.giveBack(late, leaseToken),
    );
    const settled = new Set(settlements.map(({ id }) => id));
    for (const row of rows) if (row['lost'] === 't') settled.delete(row['id'] ?? '');
    const claimed = toClaimedEvents(
      rows.filter((row) => row['lost'] === 'f'),
      leaseToken,
    );
    this.lowWater.claimed(claimed);
    return { settled, claimed, lookedEverywhere: notBeforeMs === null };
  }

  async renew(leases: readonly Lease[], leaseMs: number): Promise<string[]> {
    if (leases.length === 0) return [];
    const rows = leases.map(({ id, leaseToken }) => ({ id, lease_token: leaseToken }));
    return this.call('renew', [JSON.stringify(rows), leaseMs]);
  }

  async redrive(request: RedriveRequest): Promise<string[]> {
    return this.call('redrive', [
      ...filterValues(request),
      request.limit,
      request.firstDelayMs,
      request.spacingMs,
    ]);
  }

  async discard(request: DeadLetterFilter & { limit: number }): Promise<string[]> {
    return this.call('discard', [...filterValues(request), request.limit]);
  }

  async prune({ status, olderThanMs, limit }: PruneRequest): Promise<number> {
    const [row] = await this.query(
      `SELECT ${this.names.qualified('prune')}($1, $2, $3) AS pruned`,
      [status, olderThanMs, limit],
    );
    return Number(row?.['pruned']);
  }

  async deadLetters(request: DeadLetterPageRequest): Promise<DeadLetterPage> {
    const [time, id] = readCursor(request.after);
    // One row more than the page, to know whether there is another page.
    const rows = await this.query(
      `SELECT ${STORED_COLUMNS} FROM ${this.names.qualified('dead_letters')}($1, $2, $3, $4, $5, $6, $7, $8)`,
      [...filterValues(request), time, id, request.limit + 1],
    );
    const page = rows.slice(0, request.limit);
    const last = page.at(-1);
    return {
      items: page.map(toDeadLetter),
      next:
        rows.length > request.limit && last !== undefined
          ? writeCursor(last['processed_at_text'] ?? '', last['id'] ?? '')
          : null,
    };
  }

  async countDeadLetters(filter: DeadLetterFilter): Promise<number> {
    const [row] = await this.query(
      `SELECT count(*) AS total FROM ${this.names.events}
       WHERE status = 'FAILED'
         AND ($1::uuid[] IS NULL OR id = ANY ($1))
         AND ($2::text IS NULL OR event_type = $2)
         AND ($3::text IS NULL OR strpos(lower(event_type), lower($3)) > 0 OR strpos(lower(last_error), lower($3)) > 0)
         AND ($4::timestamptz IS NULL OR processed_at >= $4)
         AND ($5::timestamptz IS NULL OR processed_at < $5)`,
      filterValues(filter),
    );
    return Number(row?.['total']);
  }

  async list(request: EventPageRequest): Promise<EventPage> {
    const [time, id] = readCursor(request.after);
    const answer = await this.answer('list', {
      of_state: request.state,
      of_type: request.eventType ?? null,
      after_time: time,
      after_id: id,
      page_size: request.limit + 1,
    });
    return toEventPage(answer as EventListJson, request.limit);
  }

  async find(id: string): Promise<StoredEvent | null> {
    const [row] = await this.query(
      `SELECT ${STORED_COLUMNS} FROM ${this.names.events} WHERE id = $1`,
      [id],
    );
    return row === undefined ? null : toStoredEvent(row);
  }

  async stats(): Promise<OutboxStats> {
    const [row] = await this.query(`SELECT ${this.names.qualified('stats')}() AS stats`, []);
    return toStats(JSON.parse(row?.['stats'] ?? '') as StatsRow);
  }

  async check(): Promise<void> {
    await assertSchemaVersion(this.pool, this.names);
  }

  async close(): Promise<void> {
    await this.onClose();
  }

  /** @param args the verb's arguments: `$1` is the new lease token, the values follow */
  private async take(verb: string, args: string, values: unknown[]): Promise<ClaimedEvent[]> {
    const leaseToken = randomUUID();
    const text = `SELECT ${CLAIMED_COLUMNS} FROM ${this.names.qualified(verb)}(${args})`;
    const onLate = (rows: TextRow[]): void => {
      // What was reaped waits for the next reaper: its crash is still to be counted.
      if (verb !== 'reap') this.giveBack(rows, leaseToken);
    };
    const rows = await this.query(text, [leaseToken, ...values], onLate);
    return toClaimedEvents(rows, leaseToken);
  }

  /** The claim was given up, and has come through all the same: it must not cost its events an attempt. */
  private giveBack(rows: readonly TextRow[], leaseToken: string): void {
    const claimed = rows.filter((row) => row['lost'] !== 't').map((row) => row['id'] ?? '');
    void this.settle(claimed.map((id) => ({ id, leaseToken, outcome: 'released' as const }))).catch(
      () => {},
    );
  }

  private async call(verb: string, values: unknown[]): Promise<string[]> {
    const placeholders = values.map((_, index) => `$${index + 1}`).join(', ');
    return this.ids(
      `SELECT array_to_json(${this.names.qualified(verb)}(${placeholders})) AS ids`,
      values,
    );
  }

  private async ids(text: string, values: unknown[]): Promise<string[]> {
    return JSON.parse((await this.value(text, values)) ?? '[]') as string[];
  }

  /** The one value that a statement answers, as text. */
  private async value(
    text: string,
    values: unknown[],
    executor?: SqlExecutor,
  ): Promise<string | undefined> {
    const rows =
      executor === undefined
        ? await this.query(text, values)
        : (await executor.query(text, values)).rows;
    const [value] = Object.values(rows[0] as object) as string[];
    return value;
  }

  /** A function that answers JSON. */
  private async answer(verb: string, args: Readonly<Record<string, unknown>>): Promise<unknown> {
    const named = Object.keys(args).map((name, index) => `${name} => $${index + 1}`);
    const values = Object.values(args).map((value) =>
      typeof value === 'object' && value !== null ? JSON.stringify(value) : value,
    );
    const [row] = await this.query(
      `SELECT to_jsonb(${this.names.qualified(verb)}(${named.join(', ')})) AS answer`,
      values,
    );
    return JSON.parse(row?.['answer'] ?? 'null') as unknown;
  }

  private async query(
    text: string,
    values: unknown[],
    onLate?: (rows: TextRow[]) => void,
  ): Promise<TextRow[]> {
    const { rows } = await ask(this.pool, { text, values, types: AS_TEXT }, (late) =>
      onLate?.(late as TextRow[]),
    );
    return rows as TextRow[];
  }
}

/** As PostgreSQL writes an array. UUIDs need no escaping, which the driver would look for in each. */
function uuidArray(ids: readonly string[]): string {
  return `{${ids.join(',')}}`;
}

function filterValues({
  ids,
  eventType,
  matching,
  failedAfter,
  failedBefore,
}: DeadLetterFilter): unknown[] {
  return [
    ids ?? null,
    eventType ?? null,
    matching ?? null,
    failedAfter?.toISOString() ?? null,
    failedBefore?.toISOString() ?? null,
  ];
}
