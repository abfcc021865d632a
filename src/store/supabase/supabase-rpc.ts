import { setTimeout as sleep } from 'node:timers/promises';
import { errorText } from '../../event/error-text.js';
import type { SqlNames } from '../postgres/sql-names.js';
import { failedCall, strangeAnswer, type SupabaseCallError } from './rpc-failure.js';
import type { SupabaseAnswer, SupabaseClientLike } from './supabase-client.js';

/** How long an answer is waited for, and what is done about one that did not come. */
export interface RpcPatience {
  /** For one try, in milliseconds. supabase-js by itself waits for ever. */
  readonly answerWithinMs: number;
  /** Waits between tries, in milliseconds: one more try than there are numbers. */
  readonly waitsMs: readonly number[];
}

// A statement of the store takes milliseconds, and Supabase ends it after 8 s. The waits together are longer than the
// Data API takes to learn of a migration.
const PATIENCE: RpcPatience = { answerWithinMs: 10_000, waitsMs: [100, 300, 900, 2_700] };

export interface RpcAnswer {
  readonly data: unknown;
  /** An earlier try got no answer: it may have done what this one found done already. */
  readonly afterLostAnswer: boolean;
}

/** The outbox's functions over a project's Data API. */
export class SupabaseRpc {
  /** @param client opened at the first call */
  constructor(
    private readonly client: () => Promise<SupabaseClientLike>,
    private readonly names: SqlNames,
    private readonly patience: RpcPatience = PATIENCE,
  ) {}

  /**
   * Calls a function, and again if that failed for a reason that passes.
   * @param repeatable done twice is as good as done once: then it is called again also when an answer was lost
   * @param isAnswer what an answer looks like; a wrong host answers with something else, or with nothing, and status 200
   * @throws SupabaseCallError
   */
  async call(
    verb: string,
    args: object,
    { repeatable, isAnswer, wanted }: Expected,
  ): Promise<RpcAnswer> {
    const client = await this.client();
    let afterLostAnswer = false;
    for (let attempt = 0; ; attempt++) {
      const name = `${this.names.prefix}_${verb}`;
      const { data, error, status } = await this.ask(client, name, args);
      if (error === null && isAnswer(data)) return { data, afterLostAnswer };
      if (error === null) throw strangeAnswer(name, status, wanted);

      const failure = failedCall(name, error, status);
      const waitMs = this.patience.waitsMs[attempt];
      const mayRepeat = repeatable || failure.aftermath === 'undone';
      if (failure.aftermath === 'refused' || !mayRepeat || waitMs === undefined) throw failure;
      afterLostAnswer ||= failure.aftermath === 'unknown';
      await sleep(waitMs);
    }
  }

  private async ask(
    client: SupabaseClientLike,
    name: string,
    args: object,
  ): Promise<SupabaseAnswer> {
    // What cannot be written as JSON is the caller's mistake, and no failure of the network.
    JSON.stringify(args);
    const signal = AbortSignal.timeout(this.patience.answerWithinMs);
    try {
      return await client.schema(this.names.schema).rpc(name, args).abortSignal(signal);
    } catch (error) {
      return { data: null, error: { message: errorText(error) }, status: 0 };
    }
  }
}

/** What is known of a function before it is called. */
export interface Expected {
  readonly repeatable: boolean;
  readonly isAnswer: (data: unknown) => boolean;
  /** `isAnswer` in words, for "the answer is not …". */
  readonly wanted: string;
}

export function isLostAnswer(error: unknown): boolean {
  return (error as Partial<SupabaseCallError> | undefined)?.aftermath === 'unknown';
}
