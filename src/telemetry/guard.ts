import { errorText } from '../event/error-text.js';

/** Where to say that what watches has failed. */
export interface GuardLog {
  warn(message: string): void;
}

/** Stands between the outbox and an SDK that may throw: whoever watches must not break what is watched. */
export class Guard {
  private said = false;

  constructor(private readonly log: GuardLog) {}

  /** What `work` answers; `undefined` if it throws. */
  run<T>(work: () => T): T | undefined {
    try {
      return work();
    } catch (error) {
      this.say(error);
      return undefined;
    }
  }

  /** Calls `work` through `enter`, or by itself if that fails: exactly once. Throws what `work` throws. */
  within<T>(enter: (work: () => void) => void, work: () => T): T {
    let outcome: { readonly value: T } | { readonly error: unknown } | undefined;
    this.run(() =>
      enter(() => {
        try {
          outcome = { value: work() };
        } catch (error) {
          outcome = { error };
        }
      }),
    );
    if (outcome === undefined) return work();
    if ('error' in outcome) throw outcome.error;
    return outcome.value;
  }

  private say(error: unknown): void {
    if (this.said) return;
    this.said = true;
    this.log.warn(
      `OpenTelemetry fails and telemetry is incomplete (said once); events are not affected: ${errorText(error)}`,
    );
  }
}
