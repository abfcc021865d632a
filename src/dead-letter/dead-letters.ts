import { isEventId } from '../event/event-id.js';
import { assertKnownKeys } from '../event/known-keys.js';
import { assertMoment } from '../event/moment.js';
import { invalid } from '../event/outbox-error.js';
import { shown } from '../event/shown.js';
import {
  OutboxStore,
  type DeadLetter,
  type DeadLetterFilter,
  type DeadLetterPage,
} from '../store/outbox-store.js';
import { pageSize } from '../store/page-cursor.js';

export interface ListDeadLettersOptions extends DeadLetterFilter {
  /** Page size, 1 to 500. Default 50. */
  readonly limit?: number | undefined;
  /** `next` of the page before. Default: the first page. */
  readonly after?: string | null | undefined;
}

/** For work on many: it is done in batches. */
export interface BatchOptions {
  /** At most so many, for work in steps. Default: all that match. */
  readonly limit?: number | undefined;
  /** Aborted: no further batch is begun. What is done stays done, and the answer says how much it was. */
  readonly signal?: AbortSignal | undefined;
  /** Told after each batch. `total`: how many there were at the start. */
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
}

export interface RedriveOptions extends BatchOptions {
  /** Events made due per second, so that a large redrive is no flood. Default 100. */
  readonly perSecond?: number | undefined;
  /** The first is due after so many milliseconds, for the second and later steps. Default 0. */
  readonly firstDelayMs?: number | undefined;
}

const DEFAULT_PER_SECOND = 100;
const BATCH = 500;
const BATCH_KEYS = ['limit', 'signal', 'onProgress'];
const FILTER_KEYS = ['ids', 'eventType', 'matching', 'failedAfter', 'failedBefore'];

/** Events that were set aside: look at them, give them a second life, or discard them. */
export class OutboxDeadLetters {
  constructor(
    private readonly store: OutboxStore,
    /** Told after a redrive, e.g. to wake the relay. */
    private readonly onRedriven: () => void,
  ) {}

  /** How many there are. */
  async count(filter: DeadLetterFilter = {}): Promise<number> {
    assertFilter(filter);
    return this.store.countDeadLetters(filter);
  }

  /** A page of them, newest first. Paging stays right while rows come and go. */
  async list(options: ListDeadLettersOptions = {}): Promise<DeadLetterPage> {
    assertKnownKeys('', options, [...FILTER_KEYS, 'limit', 'after']);
    const { limit: size, after, ...filter } = options;
    assertFilter(filter);
    const limit = pageSize(size);
    return this.store.deadLetters({ ...filter, limit, after: after ?? undefined });
  }

  /** One of them; `null` if there is no such event or it is not a dead letter. */
  async get(id: string): Promise<DeadLetter | null> {
    assertFilter({ ids: [id] });
    const page = await this.store.deadLetters({ ids: [id], limit: 1 });
    return page.items[0] ?? null;
  }

  /**
   * Gives dead letters a second life: all their attempts before them, the first life's error kept in
   * `previousLives`, listeners that had succeeded not called again. The longest dead go first, `perSecond` of them
   * due each second.
   *
   * ```ts
   * await deadLetters.redrive(id);
   * await deadLetters.redrive([id, otherId]);
   * await deadLetters.redrive({ eventType: 'quote_request.created' });
   * await deadLetters.redrive({});   // all
   * ```
   * @returns how many were redriven; what is no dead letter (any more) is passed over
   */
  async redrive(
    which: string | readonly string[] | DeadLetterFilter,
    options: RedriveOptions = {},
  ): Promise<number> {
    const filter = toFilter(which);
    assertKnownKeys('', options, ['perSecond', 'firstDelayMs', ...BATCH_KEYS]);
    const { perSecond = DEFAULT_PER_SECOND, firstDelayMs = 0 } = options;
    assertLimit(options.limit);
    if (typeof firstDelayMs !== 'number' || !(firstDelayMs >= 0)) {
      throw invalid(`firstDelayMs must be a number, 0 or more, got ${String(firstDelayMs)}`);
    }
    if (typeof perSecond !== 'number' || !(perSecond > 0)) {
      throw invalid(`perSecond must be a number above 0, got ${String(perSecond)}`);
    }
    const spacingMs = 1_000 / perSecond;
    const redriven = await this.inBatches(filter, options, (limit, done) =>
      this.store.redrive({
        ...filter,
        limit,
        firstDelayMs: firstDelayMs + done * spacingMs,
        spacingMs,
      }),
    );
    if (redriven > 0) this.onRedriven();
    return redriven;
  }

  /**
   * Deletes dead letters for good.
   * @returns how many were deleted
   */
  async discard(
    which: string | readonly string[] | DeadLetterFilter,
    options: BatchOptions = {},
  ): Promise<number> {
    const filter = toFilter(which);
    assertKnownKeys('', options, BATCH_KEYS);
    assertLimit(options.limit);
    return this.inBatches(filter, options, (limit) => this.store.discard({ ...filter, limit }));
  }

  // Bounded by what there was at the start: events that fail again meanwhile do not keep the loop going for ever.
  private async inBatches(
    filter: DeadLetterFilter,
    { limit: most, signal, onProgress }: BatchOptions,
    step: (limit: number, done: number) => Promise<string[]>,
  ): Promise<number> {
    // A batch is bounded by itself, without a count.
    const total =
      most !== undefined && most <= BATCH
        ? most
        : Math.min(most ?? Infinity, await this.store.countDeadLetters(filter));
    let done = 0;
    const stopped = (): boolean => signal?.aborted ?? false;
    while (done < total && !stopped()) {
      const ids = await step(Math.min(BATCH, total - done), done);
      if (ids.length === 0) break;
      done += ids.length;
      onProgress?.(done, total);
    }
    return done;
  }
}

function assertLimit(limit: unknown): void {
  if (limit === undefined || (typeof limit === 'number' && Number.isInteger(limit) && limit > 0)) {
    return;
  }
  throw invalid(`limit must be a whole number from 1 on, got ${shown(limit)}`);
}

function toFilter(which: unknown): DeadLetterFilter {
  const filter =
    typeof which === 'string'
      ? { ids: [which] }
      : Array.isArray(which)
        ? { ids: which as string[] }
        : which;
  assertFilter(filter);
  return filter;
}

/**
 * A key that is misspelled, or present and undefined, would silently widen the filter to everything; `redrive(undefined)`
 * would mean "all". A slip must not.
 */
function assertFilter(filter: unknown): asserts filter is DeadLetterFilter {
  if (typeof filter !== 'object' || filter === null) {
    throw invalid(
      `a dead letter filter is an id, a list of ids or an object ({} for all), got ${shown(filter)}`,
    );
  }
  assertKnownKeys('', filter, FILTER_KEYS);
  for (const [key, value] of Object.entries(filter)) {
    if (value === undefined) {
      throw invalid(
        `${key} is undefined, which would match every dead letter: leave the field out if that is meant`,
      );
    }
  }
  const { ids, eventType, matching, failedAfter, failedBefore } = filter as Record<string, unknown>;
  if (ids !== undefined) assertIds(ids);
  if (eventType !== undefined && typeof eventType !== 'string') {
    throw invalid(`eventType must be a string, got ${shown(eventType)}`);
  }
  if (matching !== undefined && (typeof matching !== 'string' || matching === '')) {
    throw invalid(`matching must be a text of at least one character, got ${shown(matching)}`);
  }
  assertTime('failedAfter', failedAfter);
  assertTime('failedBefore', failedBefore);
}

function assertIds(ids: unknown): void {
  if (!Array.isArray(ids)) throw invalid(`ids must be a list of event ids, got ${shown(ids)}`);
  for (const id of ids as unknown[]) {
    if (!isEventId(id)) {
      throw invalid(
        `an event id is a UUID, got ${typeof id === 'string' ? `"${id}"` : String(id)}`,
      );
    }
  }
}

function assertTime(name: string, time: unknown): void {
  if (time !== undefined) assertMoment(name, time);
}
