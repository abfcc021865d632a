import { invalid } from '../event/outbox-error.js';
import type { OutboxDeadLetters } from '../dead-letter/dead-letters.js';
import type { DeadLetterFilter } from '../store/outbox-store.js';
import { filterOf, searchOf } from './dead-letter-search.js';
import type { Fields } from './fields.js';
import type { Action, Steps } from './views/confirm.js';

// So many in one request: answered within a second, and few enough that many more can be counted in between.
const STEP = 200;
const DEFAULT_PER_SECOND = 100;
const FASTEST = 10_000;

export interface StepResult {
  /** With those of the steps before. */
  readonly done: number;
  readonly total: number;
  readonly finished: boolean;
}

/**
 * What is asked before anything is done: which, and how many there are now. What becomes a dead letter later is not
 * meant: otherwise events that fail again would keep a redrive going for ever.
 * @param now in milliseconds since 1970
 */
export async function planOf(
  fields: Fields,
  deadLetters: OutboxDeadLetters,
  now: number,
): Promise<Steps> {
  const action = actionOf(fields);
  const perSecond = perSecondOf(fields);
  const ids = fields.all('id');
  if (ids.length === 0 && fields.text('all') === '') {
    return { action, which: [], total: 0, done: 0, perSecond };
  }
  const filter = ids.length > 0 ? { ids } : filterOf(searchOf(fields), now);
  const newest = (await deadLetters.list({ ...filter, limit: 1 })).items[0];
  if (newest === undefined) return { action, which: [], total: 0, done: 0, perSecond };
  // By the clock that wrote it, the database's; its times are finer than ours.
  const bounded = { ...filter, failedBefore: new Date(newest.failedAt.getTime() + 1) };
  return {
    action,
    which: fieldsOf(bounded),
    total: await deadLetters.count(bounded),
    done: 0,
    perSecond,
  };
}

/** Does a step. It leaves nothing behind in this process: the next may be done by another. */
export async function takeStep(
  fields: Fields,
  deadLetters: OutboxDeadLetters,
): Promise<StepResult> {
  const action = actionOf(fields);
  const perSecond = perSecondOf(fields);
  const filter = givenFilter(fields);
  const before = fields.number('done', 0);
  const total = Math.max(fields.number('total', filter.ids?.length ?? STEP), before);
  const limit = Math.min(STEP, total - before);
  if (limit === 0) return { done: before, total, finished: true };
  const count =
    action === 'redrive'
      ? await deadLetters.redrive(filter, {
          perSecond,
          limit,
          firstDelayMs: (before * 1_000) / perSecond,
        })
      : await deadLetters.discard(filter, { limit });
  const done = before + count;
  return { done, total, finished: count < limit || done >= total };
}

/** The same work, for a form that goes on with it. */
export function stepsOf(fields: Fields): Steps {
  const filter = givenFilter(fields);
  const total = fields.number('total', filter.ids?.length ?? STEP);
  return {
    action: actionOf(fields),
    which: fieldsOf(filter),
    total,
    done: Math.min(fields.number('done', 0), total),
    perSecond: perSecondOf(fields),
  };
}

export function actionOf(fields: Fields): Action {
  const action = fields.text('action');
  if (action === 'redrive' || action === 'discard') return action;
  throw invalid(`action must be redrive or discard, got ${JSON.stringify(action)}`);
}

function perSecondOf(fields: Fields): number {
  const perSecond = fields.number('perSecond', DEFAULT_PER_SECOND);
  if (perSecond >= 1 && perSecond <= FASTEST) return perSecond;
  throw invalid(`perSecond must be a whole number from 1 to ${FASTEST}, got ${perSecond}`);
}

/** Nothing given is a mistake and not "all". */
function givenFilter(fields: Fields): DeadLetterFilter {
  const ids = fields.all('id');
  const failedAfter = momentOf(fields, 'failedAfter');
  const failedBefore = momentOf(fields, 'failedBefore');
  if (ids.length === 0 && failedBefore === undefined) {
    throw invalid('nothing was selected: tick the dead letters that are meant');
  }
  const eventType = fields.text('type');
  const matching = fields.text('matching');
  return {
    ...(ids.length > 0 && { ids }),
    ...(eventType !== '' && { eventType }),
    ...(matching !== '' && { matching }),
    ...(failedAfter !== undefined && { failedAfter }),
    ...(failedBefore !== undefined && { failedBefore }),
  };
}

function fieldsOf(filter: DeadLetterFilter): [string, string][] {
  const { ids = [], eventType, matching, failedAfter, failedBefore } = filter;
  const fields: [string, string | undefined][] = [
    ...ids.map((id): [string, string] => ['id', id]),
    ['type', eventType],
    ['matching', matching],
    ['failedAfter', failedAfter?.toISOString()],
    ['failedBefore', failedBefore?.toISOString()],
  ];
  return fields.filter((field): field is [string, string] => field[1] !== undefined);
}

function momentOf(fields: Fields, name: string): Date | undefined {
  const text = fields.text(name);
  if (text === '') return undefined;
  const moment = new Date(text);
  if (!Number.isNaN(moment.getTime())) return moment;
  throw invalid(
    `${name} must be a moment such as 2026-01-31T09:00:00.000Z, got ${JSON.stringify(text)}`,
  );
}
