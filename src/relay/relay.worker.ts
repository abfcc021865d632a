import type { Logger } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorText } from '../event/error-text.js';
import { OutboxLogger } from './outbox.logger.js';
import type { Pump } from './pump.js';
import type { Relay } from './relay.js';
import { within } from './within.js';

/** Something that calls the caretaker every 15 seconds. */
export interface Ticks {
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** What a process's relay does. `off`: it is not to relay. */
export type RelayActivity = 'off' | 'starting' | 'relaying' | 'stopping';

const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;

// How long a shutdown waits for pg-boss, whose database may be out of reach.
const TICKS_STOP_MS = 7_000;

/**
 * Starts the relay once the listeners are attached, and stops it before they are removed. The database may be down
 * at the start: the process stays up, and the worker goes on trying.
 */
export class RelayWorker {
  private readonly logger: Logger = new OutboxLogger('Outbox');
  private readonly stopping = new AbortController();
  private starting: Promise<void> | undefined;
  private stopped: Promise<void> | undefined;

  private opening: Promise<void> | undefined;
  private ticks: Ticks | undefined;
  private ticking = false;

  constructor(
    private readonly relay: Relay,
    private readonly pump: Pump,
    private readonly readiness: {
      /** Resolves when events can reach the listeners. */
      readonly listenersAttached: () => Promise<void>;
      /** Resolves when the store is what this code needs; rejects as long as it is not. */
      readonly storeReady: () => Promise<void>;
    },
    /** Opens what the ticks stand on; `undefined` in a process that does not relay. */
    private readonly openTicks: (() => Promise<Ticks>) | undefined,
    /** Tells others that this process relays. */
    private readonly heartbeat?: { start(): void; stop(): Promise<void> },
  ) {}

  get activity(): RelayActivity {
    if (this.openTicks === undefined) return 'off';
    if (this.stopping.signal.aborted) return 'stopping';
    return this.ticking ? 'relaying' : 'starting';
  }

  /** Does not wait for the database. */
  start(): void {
    this.starting ??= this.run();
  }

  /** Waits for listeners at work, within `shutdownTimeoutMs`. */
  async stop(): Promise<void> {
    this.stopped ??= this.stopOnce();
    await this.stopped;
  }

  private async run(): Promise<void> {
    try {
      await this.readiness.listenersAttached();
    } catch (error) {
      this.logger.error(
        `listeners could not be attached, nothing is delivered: ${errorText(error)}`,
      );
      return;
    }
    this.relay.open();
    this.opening = this.keepTryingToTick();
    await this.opening;
  }

  private async keepTryingToTick(): Promise<void> {
    const { signal } = this.stopping;
    const stopping = (): boolean => signal.aborted;
    let listening = false;
    for (let waitMs = FIRST_WAIT_MS; !stopping(); waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS)) {
      try {
        await this.readiness.storeReady();
        // It may have been told to stop while it waited for the store: nothing begins after that.
        if (this.openTicks === undefined || stopping()) return;
        this.pump.wake();
        if (!listening) {
          this.pump.listen();
          this.heartbeat?.start();
        }
        listening = true;
        this.ticks ??= await this.openTicks();
        // The loop ends here if the process was told to stop meanwhile: nothing starts to tick after that.
        if (!stopping()) await this.ticks.start();
        this.ticking = true;
        return;
      } catch (error) {
        const what = this.openTicks ? 'the relay cannot start ticking' : 'the outbox is not ready';
        this.logger.error(`${what}, will try again in ${waitMs / 1_000} s: ${errorText(error)}`);
      }
      await sleep(waitMs, undefined, { signal, ref: false }).catch(() => {});
    }
  }

  private async stopOnce(): Promise<void> {
    this.stopping.abort();
    const relayStopped = this.relay.stop();
    this.pump.stop();
    await relayStopped;
    // What is just being opened is closed as well, if need be after the shutdown has gone on without it.
    const ticksStopped = Promise.resolve(this.opening).then(() => this.stopTicks());
    // The last report comes when the relay has stopped: what was settled until now is in it.
    await Promise.all([this.heartbeat?.stop(), within(TICKS_STOP_MS, ticksStopped)]);
  }

  private async stopTicks(): Promise<void> {
    await this.ticks
      ?.stop()
      .catch((error: unknown) =>
        this.logger.warn(`pg-boss did not stop cleanly: ${errorText(error)}`),
      );
  }
}
