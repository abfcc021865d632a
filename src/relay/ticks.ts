import { errorText } from '../event/error-text.js';
import type { Log } from './log.js';

/** How often the relay looks for itself, whatever wakes it in between. */
export const TICK_MS = 15_000;

// A tick comes up to one poll late; the next is counted from when it should have come, so that lateness does not add up.
const POLL_SECONDS = 2;

// One job a minute sets the chain going again, should it ever break.
const EVERY_MINUTE = '* * * * *';

/** What ticking needs of pg-boss: its shape. The application's own instance fits. */
export interface TickBoss {
  createQueue(name: string, options?: object): Promise<void>;
  schedule(name: string, cron: string, data?: object | null, options?: object): Promise<void>;
  send(name: string, data?: object | null, options?: object): Promise<string | null>;
  work(name: string, options: object, handler: (jobs: TickJob[]) => Promise<void>): Promise<string>;
  offWork(name: string, options?: object): Promise<void>;
}

export interface TickJob {
  readonly startAfter?: Date | string;
  readonly startedOn?: Date | string;
}

/**
 * Ticks every 15 seconds, once among all processes, on pg-boss.
 *
 * Not by a cron of seconds: a pg-boss schedule fires at most once a minute, however its expression reads. And not by
 * several schedules a minute: they fire on time only if the instance looks at its schedules often, which an
 * application's own instance does not. Instead, each tick sends the next one, 15 seconds on. The queue keeps at most
 * one waiting job (policy `short`), so any number of processes form one chain.
 */
export class PgBossTicks {
  constructor(
    private readonly boss: TickBoss,
    private readonly queue: string,
    private readonly onTick: () => Promise<void>,
    private readonly log: Log,
  ) {}

  async start(): Promise<void> {
    // Before anything else: sending to a queue that does not exist does nothing, without an error.
    await this.boss.createQueue(this.queue, {
      policy: 'short',
      retryLimit: 0,
      deleteAfterSeconds: 3_600,
    });
    await this.boss.schedule(this.queue, EVERY_MINUTE, null, {});
    await this.boss.send(this.queue, null, {});
    // The next tick may be another process's, and what a dead one has left is not to wait for it.
    await this.onTick();
    // Last of all: whoever repeats a start that has failed must not end up with two workers.
    await this.boss.work(
      this.queue,
      { batchSize: 1, pollingIntervalSeconds: POLL_SECONDS, includeMetadata: true },
      async ([job]) => {
        await this.sendNext(job);
        await this.onTick();
      },
    );
  }

  async stop(): Promise<void> {
    await this.boss.offWork(this.queue, { wait: true });
  }

  // First the next tick, then the work: a process that dies in between breaks no chain.
  private async sendNext(job: TickJob | undefined): Promise<void> {
    try {
      const lateMs = millis(job?.startedOn) - millis(job?.startAfter);
      const waitMs = lateMs > 0 && lateMs < TICK_MS ? TICK_MS - lateMs : TICK_MS;
      await this.boss.send(this.queue, null, { startAfter: waitMs / 1_000 });
    } catch (error) {
      this.log.warn(
        `could not schedule the next tick, it will come within a minute: ${errorText(error)}`,
      );
    }
  }
}

/** Ticks of this process alone, for stores that pg-boss cannot reach. */
export class IntervalTicks {
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly onTick: () => Promise<void>) {}

  async start(): Promise<void> {
    this.timer ??= setInterval(() => void this.onTick(), TICK_MS).unref();
    await this.onTick();
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    this.timer = undefined;
  }
}

function millis(time: Date | string | undefined): number {
  return time === undefined ? 0 : new Date(time).getTime();
}
