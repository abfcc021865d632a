import { randomUUID } from 'node:crypto';
import { errorText } from '../event/error-text.js';
import { invalid, OutboxError } from '../event/outbox-error.js';
import { shown } from '../event/shown.js';
import type { Log } from '../relay/log.js';
import type { Sentinel, SentinelClaim, SentinelStore } from '../store/sentinel-store.js';
import type { Telemetry } from '../telemetry/telemetry.js';
import { bounded } from './bounded.js';
import { partsOf } from './chunk.js';
import {
  DeterministicGateError,
  GateClosedError,
  TransientGateError,
  type GateError,
} from './gate-errors.js';
import { KeptLease, LeaseLost } from './gate-lease.js';
import { GateReporter, named } from './gate-reporter.js';
import type { GateResult, GateRun, ResolvedGate } from './gate.js';
import { judgeGate, kindOf } from './judge-gate.js';
import type { Publications } from './publications.js';

/** A run that holds the gate's lease. */
interface ClaimedRun {
  readonly gate: ResolvedGate;
  readonly before: Sentinel;
  readonly kept: KeptLease;
  readonly run: GateRun;
}

/**
 * Lets one run at a time through a gate: claim, load, publish, stamp. What keeps others away is a lease and no
 * transaction: listeners may take minutes, and a transaction that waits for them holds locks and keeps the database
 * from cleaning up.
 */
export class GateKeeper {
  private readonly reporter: GateReporter;

  constructor(
    private readonly store: SentinelStore,
    private readonly publications: Publications,
    private readonly log: Log,
    telemetry: Telemetry,
  ) {
    this.reporter = new GateReporter(log, telemetry);
  }

  /**
   * One attempt.
   * @param stopping aborted when nothing new is to begin
   * @param signal aborted when nothing is waited for any more
   */
  async attempt(
    gate: ResolvedGate,
    stopping: AbortSignal,
    signal: AbortSignal,
  ): Promise<GateResult> {
    if (gate.own !== undefined && (await this.asking(gate, () => isStamped(gate, signal))))
      return { outcome: 'already-stamped' };
    const leaseToken = randomUUID();
    const { answer, abandoned, sentinel } = await this.asking(gate, () =>
      this.claim(gate, leaseToken),
    );
    switch (answer) {
      case 'stamped':
        return { outcome: 'already-stamped' };
      case 'running':
        return { outcome: 'running-elsewhere' };
      case 'closed':
        throw closedError(gate, sentinel);
      case 'claimed':
    }
    if (abandoned) {
      const lost = new Error('the process that was at it died, stalled or lost its database');
      const error = await this.fail(gate, sentinel, leaseToken, lost);
      if (error instanceof DeterministicGateError) throw error;
      return this.attempt(gate, stopping, signal);
    }
    return this.runClaimed(gate, sentinel, leaseToken, stopping, signal);
  }

  private async runClaimed(
    gate: ResolvedGate,
    before: Sentinel,
    leaseToken: string,
    stopping: AbortSignal,
    signal: AbortSignal,
  ): Promise<GateResult> {
    const { key, version } = gate;
    const lost = new AbortController();
    const lease = { key, version, leaseToken };
    const kept = new KeptLease(this.store, lease, gate.leaseMs, this.log, (reason) =>
      lost.abort(reason),
    );
    const over = AbortSignal.any([signal, lost.signal]);
    const done = new AbortController();
    const run = { key, version, signal: AbortSignal.any([over, done.signal]) };
    try {
      return await this.work({ gate, before, kept, run }, stopping);
    } catch (error) {
      if (error instanceof LeaseLost)
        throw new TransientGateError(gate, before.failures, error.message, error);
      if (isShutdown(error)) {
        await this.giveBack(kept);
        throw error;
      }
      // Another process may have the listeners (in a rolling deploy the new ones do): its gate is not to be closed.
      if (error instanceof NotBegun) {
        await this.giveBack(kept);
        const message = `${named(gate)} was not begun: ${errorText(error.cause)}`;
        throw new TransientGateError(gate, before.failures, message, error.cause);
      }
      throw await this.fail(gate, before, leaseToken, error);
    } finally {
      kept.stop();
      done.abort(new Error('the run is over'));
    }
  }

  private async work(claimed: ClaimedRun, stopping: AbortSignal): Promise<GateResult> {
    const { gate, kept, run } = claimed;
    // Looked at before the lease was had: another run may have stamped since.
    if (gate.own !== undefined && (await isStamped(gate, run.signal))) {
      await this.store.release(kept.lease);
      return { outcome: 'already-stamped' };
    }
    await this.assertHeard(gate, run.signal);
    stopping.throwIfAborted();
    const rows = await bounded('load', gate.timeoutMs, run.signal, () => gate.load(run));
    if (!Array.isArray(rows))
      throw invalid(`gate.load must answer an array of rows, got ${shown(rows)}`);
    if (rows.length === 0) return this.endEmpty(claimed);

    for (const part of partsOf(rows, gate.chunkSize)) {
      stopping.throwIfAborted();
      const publication = this.publications.prepare(gate.eventType, gate.payload(part));
      await this.publications.deliver(publication, run.signal);
    }
    await this.stamp(claimed);
    this.reporter.stamped(gate, claimed.before, rows.length);
    return { outcome: 'stamped', rows: rows.length };
  }

  private async assertHeard({ eventType }: ResolvedGate, signal: AbortSignal): Promise<void> {
    try {
      await this.publications.assertHeard(eventType, signal);
    } catch (error) {
      throw isUnheard(error) ? new NotBegun('nobody listens', { cause: error }) : error;
    }
  }

  private async endEmpty(claimed: ClaimedRun): Promise<GateResult> {
    const stamped = claimed.gate.whenEmpty === 'stamp';
    if (stamped) await this.stamp(claimed);
    else await this.end(claimed, false);
    return { outcome: 'empty', stamped };
  }

  private async stamp(claimed: ClaimedRun): Promise<void> {
    const { gate, kept, run } = claimed;
    if (gate.own === undefined) return this.end(claimed, true);
    const { stamp } = gate.own;
    await kept.confirm();
    await bounded('stamp', gate.timeoutMs, run.signal, () => stamp(run));
    // It is stamped. What is left to do is to forget earlier failures.
    await this.end(claimed, false).catch((error: unknown) =>
      this.log.warn(`${named(gate)} is stamped, its lease could not be ended: ${errorText(error)}`),
    );
  }

  private async end({ kept }: ClaimedRun, stamped: boolean): Promise<void> {
    if (!(await this.store.stamp(kept.lease, stamped))) throw new LeaseLost(kept.lease.key);
  }

  private claim(gate: ResolvedGate, leaseToken: string): Promise<SentinelClaim> {
    const { key, version, leaseMs } = gate;
    return this.store.claim({
      key,
      version,
      leaseToken,
      leaseMs,
      heedStamp: gate.own === undefined,
    });
  }

  /** Asks whether there is anything to do. A failure of that is told in the same classes, and not counted. */
  private async asking<T>(gate: ResolvedGate, ask: () => Promise<T>): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      if (isShutdown(error)) throw error;
      const message = `${named(gate)} could not be looked at: ${errorText(error)}`;
      throw kindOf(error, gate.classify) === 'deterministic'
        ? new DeterministicGateError(gate, 0, message, error)
        : new TransientGateError(gate, 0, message, error);
    }
  }

  /** Counts a failure. @returns what is to be thrown */
  private async fail(
    gate: ResolvedGate,
    before: Sentinel,
    leaseToken: string,
    cause: unknown,
  ): Promise<GateError> {
    const failure = judgeGate(await this.asItIsNow(before), cause, gate);
    const { key, version } = gate;
    try {
      if ((await this.store.fail({ key, version, leaseToken }, failure)) === null)
        this.log.warn(`${named(gate)} failed after its lease was lost: ${failure.error}`);
      else this.reporter.failed(gate, failure, gate.alarmAfter);
    } catch (error) {
      // The lease will run out, and whoever comes next counts it.
      this.log.error(
        `${named(gate)} failed: ${failure.error}; and that could not be stored: ${errorText(error)}`,
      );
    }
    const message = `${named(gate)} failed (${failure.failures} in a row) and is not stamped: ${failure.error}`;
    return failure.closeMs === null
      ? new TransientGateError(gate, failure.failures, message, cause)
      : new DeterministicGateError(gate, failure.failures, message, cause);
  }

  /** Somebody may have reopened the gate since the run began: then this failure is the first. */
  private async asItIsNow(before: Sentinel): Promise<Sentinel> {
    try {
      return (await this.store.find(before)) ?? before;
    } catch {
      return before;
    }
  }

  private async giveBack({ lease }: KeptLease): Promise<void> {
    await this.store.release(lease).catch((error: unknown) => {
      this.log.warn(`${named(lease)} could not be given back: ${errorText(error)}`);
    });
  }
}

async function isStamped(gate: ResolvedGate, signal: AbortSignal): Promise<boolean> {
  const { own, key, version, timeoutMs } = gate;
  const answer = await bounded('isStamped', timeoutMs, signal, () =>
    own?.isStamped({ key, version, signal }),
  );
  if (typeof answer === 'boolean') return answer;
  throw invalid(`gate.isStamped must answer true or false, got ${shown(answer)}`);
}

function closedError(gate: ResolvedGate, sentinel: Sentinel): GateClosedError {
  const { failures, lastError, closedAt, closedUntil } = sentinel;
  const since = closedAt ?? new Date(0);
  const until = closedUntil ?? since;
  const reason = lastError ?? '';
  return new GateClosedError(
    gate,
    failures,
    `${named(gate)} is closed since ${since.toISOString()} until ${until.toISOString()}, nothing was loaded: it failed ` +
      `${failures} time(s) in a row, last with: ${reason}. Mend the cause, then call reopen(${JSON.stringify(gate.key)})`,
    since,
    until,
    reason,
  );
}

/** Told from an `UNHEARD` of the work's own, which counts. */
class NotBegun extends Error {}

function isUnheard(error: unknown): boolean {
  return error instanceof OutboxError && error.code === 'UNHEARD';
}

function isShutdown(error: unknown): boolean {
  return error instanceof OutboxError && error.code === 'SHUTTING_DOWN';
}
