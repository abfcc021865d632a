import {
  ActivityStore,
  type Activity,
  type ActivityRequest,
  type KnownListener,
  type RelayReport,
  type RelayState,
} from '../activity-store.js';

/** Calls a function of the migrations that answers JSON, with arguments by name. Each may be called twice. */
export type CallVerb = (verb: string, args: Readonly<Record<string, unknown>>) => Promise<unknown>;

interface RelayJson {
  readonly relay_id: string;
  readonly name: string;
  readonly version: string;
  readonly listeners: KnownListener[];
  readonly started_at: string;
  readonly seen_at: string;
  readonly stopped_at: string | null;
  readonly silent_ms: number;
}

interface ActivityJson {
  readonly at: string;
  readonly event_type: string;
  readonly delivered: number;
  readonly retried: number;
  readonly failed: number;
}

/** Reports in PostgreSQL, reached over a pool or over rpc: the functions are the same. */
export class CalledActivityStore extends ActivityStore {
  constructor(private readonly call: CallVerb) {
    super();
  }

  async report(report: RelayReport): Promise<void> {
    const { relayId, activity, ...rest } = report;
    await this.call('report', {
      report: {
        ...rest,
        relay_id: relayId,
        activity: activity.map(({ eventType, delivered, retried, failed }) => ({
          event_type: eventType,
          delivered,
          retried,
          failed,
        })),
      },
    });
  }

  async relays(): Promise<RelayState[]> {
    const rows = (await this.call('relay_list', {})) as RelayJson[];
    return rows.map((row) => ({
      relayId: row.relay_id,
      name: row.name,
      version: row.version,
      listeners: row.listeners,
      startedAt: new Date(row.started_at),
      seenAt: new Date(row.seen_at),
      stoppedAt: row.stopped_at === null ? null : new Date(row.stopped_at),
      silentMs: row.silent_ms,
    }));
  }

  async activity({ sinceMs, stepMs, eventType }: ActivityRequest): Promise<Activity[]> {
    const rows = (await this.call('activity_list', {
      since_ms: sinceMs,
      step_ms: stepMs,
      of_type: eventType ?? null,
    })) as ActivityJson[];
    return rows.map(({ at, event_type: type, delivered, retried, failed }) => ({
      at: new Date(at),
      eventType: type,
      delivered,
      retried,
      failed,
    }));
  }
}
