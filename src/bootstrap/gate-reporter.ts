import type { Log } from '../relay/log.js';
import type { GateName, Sentinel, SentinelFailure } from '../store/sentinel-store.js';
import type { Telemetry } from '../telemetry/telemetry.js';

/** Says what became of gates, louder the longer they fail, and what it means. */
export class GateReporter {
  constructor(
    private readonly log: Log,
    private readonly telemetry: Telemetry,
  ) {}

  stamped(gate: GateName, before: Sentinel, rows: number): void {
    const after = before.failures === 0 ? '' : ` after ${times(before.failures, 'failure')}`;
    this.log.log(`${named(gate)} is stamped${after}: ${rows} row(s) published`);
  }

  failed(gate: GateName, failure: SentinelFailure, alarmAfter: number): void {
    const { failures, error, kind, closeMs } = failure;
    this.telemetry.gateFailed(kind, closeMs !== null);
    if (closeMs !== null) {
      this.log.error(
        `${named(gate)} is closed for ${seconds(closeMs)} s: ${why(failure)}. Its sentinel is not stamped and what its ` +
          `listeners feed stays empty or stale until the cause is mended: ${error}`,
      );
    } else if (failures >= alarmAfter) {
      this.log.error(
        `${named(gate)} has failed ${times(failures, 'time')} in a row: this is not a blip any more. Its sentinel is not ` +
          `stamped, what its listeners feed stays empty or stale, and every call does the whole work again: ${error}`,
      );
    } else {
      this.log.warn(
        `${named(gate)} failed (${failures} in a row) and is not stamped, the next call tries again: ${error}`,
      );
    }
  }
}

export function named({ key, version }: GateName): string {
  return `gate ${JSON.stringify(key)} (version ${version})`;
}

function why({ failures, sameFailures, kind }: SentinelFailure): string {
  const inARow = `it has failed ${times(failures, 'time')} in a row`;
  if (kind === 'deterministic' && sameFailures > 1)
    return `${inARow}, the last ${sameFailures} with the same message`;
  return `${inARow}, and this failure comes back the same however often it is tried`;
}

function times(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function seconds(ms: number): number {
  return Math.round(ms / 100) / 10;
}
