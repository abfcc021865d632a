import pg from 'pg';
import { migrateOutbox } from '../../src/index.js';
import type { Command, Point, RelayAppSettings, Work } from '../apps/relay-app.js';
import { startChild, type Child } from '../support/child.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { until } from '../support/until.js';

/** A machine that runs other tests as well may need ten times as long as one that does not. */
export const PATIENTLY = { timeoutMs: 30_000 };

/** One line of the ledger: a listener was called, or has finished. */
export interface Note {
  readonly event: string;
  readonly n: number;
  readonly attempt: number;
  readonly app: string;
  readonly point: 'started' | 'finished';
  readonly at: Date;
}

export interface EventRow {
  readonly id: string;
  readonly n: number;
  readonly status: 'PENDING' | 'PROCESSING' | 'COMPLETED' | 'FAILED';
  readonly retry_count: number;
  readonly last_error: string | null;
}

export interface Stranger {
  query(text: string): Promise<void>;
  end(how: 'COMMIT' | 'ROLLBACK'): Promise<void>;
}

export interface RelayApp {
  readonly child: Child;
  /** Resolves when it stands at the point. */
  at(point: Point): Promise<void>;
  tell(command: Command): void;
  /** A tick by hand; resolves when it is over. */
  tick(): Promise<void>;
  reap(): Promise<number>;
}

/** Starts test/apps/relay-app.ts, and waits until it relays. */
export async function startRelayApp(settings: RelayAppSettings): Promise<RelayApp> {
  const app = launchRelayApp(settings);
  await untilRelays(app, settings);
  return app;
}

async function untilRelays({ child }: RelayApp, settings: RelayAppSettings): Promise<void> {
  await child.message('ready', PATIENTLY);
  if (settings.boss === 'hand' && settings.relay !== false)
    await child.message('ticking', PATIENTLY);
}

function launchRelayApp(settings: RelayAppSettings, apps?: string): RelayApp {
  const child = startChild('relay-app', {
    env: { RELAY_APP: JSON.stringify(settings), NO_COLOR: '1' },
    scope: 'file',
    ...(apps !== undefined && { apps }),
  });
  const tell = (command: Command): void => child.send(JSON.stringify(command));
  return {
    child,
    tell,
    async at(point) {
      await until(
        () => child.messages.some((message) => message.type === 'at' && message['point'] === point),
        { what: `the app stands at "${point}"`, ...PATIENTLY },
      ).catch((error: unknown) => {
        throw new Error(`${String(error)}\n${child.stdout}\n${child.stderr}`);
      });
    },
    async tick() {
      tell({ do: 'tick' });
      await child.message('ticked', PATIENTLY);
    },
    async reap() {
      tell({ do: 'reap' });
      return Number((await child.message('reaped', PATIENTLY))['total']);
    },
  };
}

/** A database with an outbox and a ledger, and the processes that work on it. */
export class Rig implements AsyncDisposable {
  private readonly apps: Child[] = [];

  private constructor(readonly database: TestDatabase) {}

  /** @param options.empty the outbox is not there yet: whoever starts first has to make it */
  static async open({ empty = false } = {}): Promise<Rig> {
    const database = await createDatabase();
    if (!empty) await migrateOutbox({ database: database.pool });
    await createLedger(database);
    return new Rig(database);
  }

  /**
   * Starts a process; without settings of its own it ticks by hand, on the application's pool.
   * @param apps where another version's compiled apps lie
   */
  async start(settings: Partial<RelayAppSettings> = {}, apps?: string): Promise<RelayApp> {
    const app = this.launch(settings, apps);
    await untilRelays(app, this.complete(settings));
    return app;
  }

  /** Starts a process that may not get as far as to relay. */
  launch(settings: Partial<RelayAppSettings> = {}, apps?: string): RelayApp {
    const app = launchRelayApp(this.complete(settings), apps);
    this.apps.push(app.child);
    return app;
  }

  private complete(settings: Partial<RelayAppSettings>): RelayAppSettings {
    return {
      database: this.database.connectionString,
      boss: 'hand',
      pool: 'app',
      ...settings,
    };
  }

  /** Stores events of type `work` past every app: nobody is woken. Answers their ids. */
  async store(work: readonly Work[]): Promise<string[]> {
    const events = work.map((payload) => ({ event_type: 'work', payload }));
    const [row] = await this.database.query<{ ids: string[] }>(
      'SELECT outbox_enqueue($1)::text[] AS ids',
      [JSON.stringify(events)],
    );
    return row?.ids ?? [];
  }

  async events(): Promise<EventRow[]> {
    return this.database.query<EventRow>(
      `SELECT id, (payload->>'n')::int AS n, status, retry_count, last_error
       FROM outbox_events ORDER BY (payload->>'n')::int`,
    );
  }

  async ledger(): Promise<Note[]> {
    return this.database.query<Note>('SELECT * FROM ledger ORDER BY id');
  }

  /** How often the listener was called, by the number of the event. */
  async calls(): Promise<Map<number, number>> {
    const calls = new Map<number, number>();
    for (const { n, point } of await this.ledger())
      if (point === 'started') calls.set(n, (calls.get(n) ?? 0) + 1);
    return calls;
  }

  /** The leases of whoever is dead are over, as if their time had passed. */
  async expireLeases(): Promise<number> {
    const rows = await this.database.query(
      `UPDATE outbox_events SET leased_until = now() - interval '1 hour'
       WHERE status = 'PROCESSING' RETURNING id`,
    );
    return rows.length;
  }

  /** The backoff of whatever waits is over. */
  async makeDue(): Promise<void> {
    await this.database.query(
      `UPDATE outbox_events SET scheduled_at = now() - interval '1 second' WHERE status = 'PENDING'`,
    );
  }

  async untilEvery(status: EventRow['status']): Promise<EventRow[]> {
    return this.untilEvents(
      (events) => events.length > 0 && events.every((event) => event.status === status),
      `every event is ${status}`,
    );
  }

  async untilNoneIs(...statuses: EventRow['status'][]): Promise<EventRow[]> {
    return this.untilEvents(
      (events) => events.length > 0 && !events.some(({ status }) => statuses.includes(status)),
      `no event is ${statuses.join(' or ')}`,
    );
  }

  private async untilEvents(
    check: (events: readonly EventRow[]) => boolean,
    what: string,
  ): Promise<EventRow[]> {
    let events: EventRow[] = [];
    await until(async () => check((events = await this.events())), {
      what,
      everyMs: 25,
      ...PATIENTLY,
    }).catch((error: unknown) => {
      const states = Map.groupBy(events, ({ status }) => status);
      const summary = [...states].map(([status, rows]) => `${rows.length} ${status}`).join(', ');
      const output = this.apps.map((child) => `${child.stdout}\n${child.stderr}`).join('\n---\n');
      throw new Error(`${String(error)}\n${summary}\n${output}`);
    });
    return events;
  }

  /** All processes are dead; their last statements may still be under way, and take rows for nobody. */
  async untilSessionsAreGone(): Promise<void> {
    await until(
      async () => {
        const [row] = await this.database.query<{ sessions: number }>(
          `SELECT count(*)::int AS sessions FROM pg_stat_activity
           WHERE datname = current_database() AND application_name = 'relay-app'`,
        );
        return row?.sessions === 0;
      },
      { what: 'the server has noticed that the processes are dead', ...PATIENTLY },
    );
  }

  /** A second process takes over from the dead: expired leases are reaped, what waits is due, all is delivered. */
  async recover(settings: Partial<RelayAppSettings> = {}): Promise<RelayApp> {
    await this.untilSessionsAreGone();
    await this.expireLeases();
    const survivor = await this.start({ name: 'survivor', ...settings });
    await survivor.tick();
    // It looks for the dead at its start too: whichever came first is still to write its verdict down.
    await this.untilNoneIs('PROCESSING');
    await this.makeDue();
    await survivor.tick();
    return survivor;
  }

  /** Somebody else with an open transaction, in which these statements have run. Ends with the rig at the latest. */
  async stranger(...statements: string[]): Promise<Stranger> {
    const client = new pg.Client({ connectionString: this.database.connectionString });
    client.on('error', () => {});
    await client.connect();
    for (const statement of ['BEGIN', ...statements]) await client.query(statement);
    return {
      query: async (text) => void (await client.query(text)),
      async end(how) {
        await client.query(how);
        await client.end();
      },
    };
  }

  /** The server process of the statement that waits for a lock and contains this text. */
  async untilBlocked(text: string): Promise<number> {
    return until(
      async () => {
        const [session] = await this.database.query<{ pid: number }>(
          `SELECT pid FROM pg_stat_activity
           WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE $1`,
          [`%${text}%`],
        );
        return session?.pid;
      },
      { what: `a statement with "${text}" waits for a lock`, ...PATIENTLY },
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.apps.map((child) => child.kill()));
    // The session of a client that was killed in the middle of a statement stays for a while.
    await this.database.terminateBackends();
    await this.database.drop();
  }
}

export async function createLedger(database: Pick<TestDatabase, 'query'>): Promise<void> {
  await database.query(`
    CREATE TABLE ledger (
      id bigint GENERATED ALWAYS AS IDENTITY,
      event uuid NOT NULL,
      n integer NOT NULL,
      attempt integer NOT NULL,
      app text NOT NULL,
      point text NOT NULL,
      at timestamptz NOT NULL DEFAULT clock_timestamp())`);
}
