import { Injectable } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PayloadOf } from '../delivery/outbox-context.js';
import { assertKnownKeys } from '../event/known-keys.js';
import { invalid, OutboxError } from '../event/outbox-error.js';
import { shown } from '../event/shown.js';
import type { Log } from '../relay/log.js';
import { within } from '../relay/within.js';
import type { GateState, SentinelStats, SentinelStore } from '../store/sentinel-store.js';
import type { Telemetry } from '../telemetry/telemetry.js';
import { reasonText, TransientGateError } from './gate-errors.js';
import { GateKeeper } from './gate-keeper.js';
import {
  keyOf,
  resolveGate,
  versionOf,
  type Gate,
  type GateResult,
  type ResolvedGate,
} from './gate.js';
import { waitMs } from './judge-gate.js';
import type { Publications } from './publications.js';

/** Which gates to list. */
export interface ListGatesOptions {
  readonly key?: string | undefined;
  /** Only those whose last run has failed. */
  readonly failing?: boolean | undefined;
  /** 1 to 1,000. Default 100. */
  readonly limit?: number | undefined;
}

// After a stop has broken off what still ran: the time to give leases back.
const LAST_RELEASE_MS = 2_000;

/**
 * Publishes events to the `@OnEvent` listeners of this process, without storing them, and knows whether every listener
 * has succeeded: what a "done" mark may be stamped on.
 */
@Injectable()
export class BootstrapPublisher {
  /** Nothing new begins. */
  private readonly stopping = new AbortController();
  /** Nothing is waited for any more. */
  private readonly over = new AbortController();
  private readonly underWay = new Set<Promise<unknown>>();
  private stopped: Promise<void> | undefined;

  constructor(
    private readonly publications: Publications,
    /** `undefined`: the application's own store has none. */
    private readonly sentinels: SentinelStore | undefined,
    private readonly log: Log,
    private readonly shutdownTimeoutMs: number,
    private readonly telemetry: Telemetry,
  ) {}

  /**
   * Fire and forget, for hot paths: a listener's failure is logged with its name, and nobody is told.
   * @throws OutboxError `INVALID_ARGUMENT`, at once; nothing else
   */
  publish<EventType extends string>(eventType: EventType, payload: PayloadOf<EventType>): void {
    const publication = this.publications.prepare(eventType, payload);
    void this.whileOpen(() => this.publications.deliver(publication, this.over.signal)).catch(
      (error: unknown) => {
        this.log.error(`published ${eventType} ${publication.id}: ${reasonText(error)}`);
      },
    );
  }

  /**
   * Resolves when **every** listener has succeeded, whatever their decorators say of errors. If the listeners are not
   * attached yet, it waits for them, at most `relay.listenerTimeoutMs`; so long may they take as well.
   *
   * @throws PublishFailedError with every failure and the name of its listener; OutboxError `UNHEARD` if nobody
   * listens, `SHUTTING_DOWN`, `INVALID_ARGUMENT`, `SETUP` if the listeners were never attached
   */
  async publishAsync<EventType extends string>(
    eventType: EventType,
    payload: PayloadOf<EventType>,
  ): Promise<void> {
    const publication = this.publications.prepare(eventType, payload);
    await this.whileOpen(() => this.publications.deliver(publication, this.over.signal));
  }

  /**
   * Work that is done once per key: asks whether it is stamped, loads the rows, publishes them chunk by chunk, and stamps
   * when every listener has succeeded for each.
   *
   * ```ts
   * await publisher.run({
   *   key: `records:${tenantId}`,
   *   eventType: 'record.bulk.upserted',
   *   load: ({ signal }) => fetchAndUpsert(tenantId, signal),
   *   payload: (records) => ({ tenantId, recordIds: records.map(({ id }) => id) }),
   *   whenEmpty: 'stamp',
   * });
   * ```
   *
   * One run at a time per key, in all processes together. A crash before the stamp leaves it unset, and the first call
   * after the lease has run out repeats the work: `load` and listeners must be idempotent.
   *
   * @throws TransientGateError if a retry may mend it, DeterministicGateError if not, GateClosedError (one of the latter)
   * if it was not even tried; OutboxError `INVALID_ARGUMENT`, `SHUTTING_DOWN`, `SETUP` if the store has no sentinels
   */
  async run<EventType extends string, Row>(gate: Gate<EventType, Row>): Promise<GateResult> {
    const resolved = resolveGate(gate);
    const keeper = new GateKeeper(
      this.assertSentinels(),
      this.publications,
      this.log,
      this.telemetry,
    );
    return this.whileOpen(async () => {
      for (let retry = 1; ; retry++) {
        try {
          return await keeper.attempt(resolved, this.stopping.signal, this.over.signal);
        } catch (error) {
          if (!(error instanceof TransientGateError) || retry > resolved.retries) throw error;
          const { signal } = this.stopping;
          const ms = retryWaitMs(resolved, retry);
          if (ms === undefined) throw error;
          await sleep(ms, undefined, { signal }).catch(() => {});
          if (signal.aborted) throw error;
        }
      }
    });
  }

  /**
   * Opens a closed gate at once, and counts its failures from the start.
   * @param version default: all of them
   * @returns whether there was anything to open or to forget
   */
  async reopen(key: string, version?: string | number): Promise<boolean> {
    const meant = version === undefined ? undefined : versionOf(version);
    return (await this.assertSentinels().reopen(keyOf(key), meant)) > 0;
  }

  /** The state of gates: those that failed last come first. */
  async gates(options: ListGatesOptions = {}): Promise<GateState[]> {
    assertKnownKeys('', options, ['key', 'failing', 'limit']);
    const { key, failing, limit = 100 } = options;
    if (key !== undefined && typeof key !== 'string')
      throw invalid(`key must be a text, got ${shown(key)}`);
    if (failing !== undefined && typeof failing !== 'boolean')
      throw invalid(`failing must be true or false, got ${shown(failing)}`);
    if (!Number.isInteger(limit) || limit < 1 || limit > 1_000)
      throw invalid(`limit must be a whole number from 1 to 1000, got ${String(limit)}`);
    return this.assertSentinels().list({ ...options, limit });
  }

  /** How many gates fail, and how many of them are closed. */
  async stats(): Promise<SentinelStats> {
    return this.assertSentinels().stats();
  }

  /** Begins nothing new, waits for what runs, at most `shutdownTimeoutMs`, and breaks the rest off. */
  async stop(): Promise<void> {
    this.stopped ??= this.stopOnce();
    await this.stopped;
  }

  private async stopOnce(): Promise<void> {
    this.stopping.abort(shuttingDown());
    await within(this.shutdownTimeoutMs, this.idle());
    this.over.abort(shuttingDown());
    await within(LAST_RELEASE_MS, this.idle());
  }

  private async idle(): Promise<void> {
    await Promise.allSettled(this.underWay);
  }

  private async whileOpen<T>(work: () => Promise<T>): Promise<T> {
    this.stopping.signal.throwIfAborted();
    const running = work();
    this.underWay.add(running);
    try {
      return await running;
    } finally {
      this.underWay.delete(running);
    }
  }

  private assertSentinels(): SentinelStore {
    if (this.sentinels !== undefined) return this.sentinels;
    throw new OutboxError(
      'SETUP',
      'gates need a place for their sentinels: connectionString, pool, supabase, InMemoryOutboxStore, or a store of ' +
        'yours with the property sentinels (a SentinelStore). publish and publishAsync work without',
    );
  }
}

function shuttingDown(): OutboxError {
  return new OutboxError(
    'SHUTTING_DOWN',
    'the application is shutting down: nothing is published any more',
  );
}

// Node's timers take no more, and make a millisecond of it.
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** `undefined`: whoever says how long to wait has failed, and what is to be told is why the work has. */
function retryWaitMs({ backoffMs }: ResolvedGate, retry: number): number | undefined {
  try {
    return Math.min(waitMs(backoffMs(retry)), LONGEST_TIMER_MS);
  } catch {
    return undefined;
  }
}
