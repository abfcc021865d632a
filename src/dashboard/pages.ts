import type { BootstrapPublisher } from '../bootstrap/bootstrap.publisher.js';
import type { OutboxDeadLetters } from '../dead-letter/dead-letters.js';
import { isEventId } from '../event/event-id.js';
import type { OutboxMonitor } from '../monitor/outbox.monitor.js';
import type { Activity } from '../store/activity-store.js';
import type { OutboxStore } from '../store/outbox-store.js';
import { planOf, stepsOf, takeStep } from './act.js';
import { filterOf, queryOf, searchOf } from './dead-letter-search.js';
import type { ResolvedSettings } from './dashboard-options.js';
import { Fields } from './fields.js';
import { listenerStates } from './listener-states.js';
import { masked } from './mask.js';
import { OverviewReadings } from './overview-readings.js';
import { render } from './render.js';
import { htmlReply, jsonReply, seeOther, type Reply } from './reply.js';
import { seriesOf, totalsByType, type Span } from './series.js';
import { errorText } from '../event/error-text.js';
import { Confirm } from './views/confirm.js';
import { DeadLetters } from './views/dead-letters.js';
import { EventDetail } from './views/event-detail.js';
import { Gates } from './views/gates.js';
import { Overview } from './views/overview.js';
import { Problem, type ProblemStatus } from './views/problem.js';
import { Processes } from './views/processes.js';
import type { Visit } from './views/visit.js';
import { Waiting, type WaitingState } from './views/waiting.js';

const PAGE_SIZE = 50;

/** What the pages are made from. */
export interface DashboardSources {
  readonly store: OutboxStore;
  readonly monitor: OutboxMonitor;
  readonly deadLetters: OutboxDeadLetters;
  readonly publisher: BootstrapPublisher;
}

/** One method a page: what was asked in, a reply out. */
export class DashboardPages {
  private readonly readings: OverviewReadings;

  constructor(
    private readonly sources: DashboardSources,
    private readonly settings: ResolvedSettings,
  ) {
    const { store, monitor, publisher } = sources;
    this.readings = new OverviewReadings(store, monitor, publisher);
  }

  async overview(visit: Visit, query: Fields): Promise<Reply> {
    const { span, eventType } = chartOf(query);
    const [stats, relays, gates, activity] = await Promise.all([
      this.readings.stats.get(),
      this.readings.relays.get(),
      this.readings.gates.get(),
      this.readings.activity[span].get(),
    ]);
    const data = {
      stats,
      relays,
      gates,
      listeners: this.sources.monitor.listeners(),
      span,
      eventType,
      series: seriesOf(onlyOf(activity, eventType), span, visit.now.getTime()),
      totals: totalsByType(activity),
    };
    return htmlReply(render(Overview, { visit, data }));
  }

  async activity(visit: Visit, query: Fields): Promise<Reply> {
    const { span, eventType } = chartOf(query);
    const activity = await this.readings.activity[span].get();
    return jsonReply(seriesOf(onlyOf(activity, eventType), span, visit.now.getTime()));
  }

  async processes(visit: Visit): Promise<Reply> {
    const relays = await this.readings.relays.get();
    const listeners = this.sources.monitor.listeners();
    return htmlReply(render(Processes, { visit, data: { relays, listeners } }));
  }

  async gates(visit: Visit, query: Fields): Promise<Reply> {
    const { store, publisher } = this.sources;
    const gates = store.sentinels === undefined ? null : await publisher.gates();
    const reopened = query.text('reopened') !== '';
    return htmlReply(render(Gates, { visit, gates, reopened }));
  }

  async reopenGate(visit: Visit, form: Fields): Promise<Reply> {
    await this.sources.publisher.reopen(form.text('key'), form.text('version') || undefined);
    this.readings.forget();
    return seeOther(visit.link('gates', { reopened: 'yes' }));
  }

  async deadLetters(visit: Visit, query: Fields): Promise<Reply> {
    const search = searchOf(query);
    const filter = filterOf(search, visit.now.getTime());
    const after = query.text('after') || null;
    const { deadLetters } = this.sources;
    const isEverything = Object.values(queryOf(search)).every((value) => value === '');
    const [{ items, next }, count] = await Promise.all([
      deadLetters.list({ ...filter, limit: PAGE_SIZE, after }),
      isEverything
        ? this.readings.stats.get().then(({ failed }) => failed)
        : deadLetters.count(filter),
    ]);
    const data = {
      search,
      items,
      next,
      isFirstPage: after === null,
      // Read at another moment than the page.
      count: Math.max(count, items.length),
      notice: noticeOf(visit, query),
    };
    return htmlReply(render(DeadLetters, { visit, data }));
  }

  async confirm(visit: Visit, query: Fields): Promise<Reply> {
    const steps = await planOf(query, this.sources.deadLetters, visit.now.getTime());
    return htmlReply(render(Confirm, { visit, steps }));
  }

  /** A step of a redrive or a discard. A script is told how far it is; without, a page asks to go on. */
  async run(visit: Visit, form: Fields, forScript: boolean): Promise<Reply> {
    const steps = stepsOf(form);
    let result;
    try {
      result = await takeStep(form, this.sources.deadLetters);
    } catch (error) {
      const failure = errorText(error);
      if (forScript) return jsonReply({ failure }, 500);
      return htmlReply(render(Confirm, { visit, steps, underWay: true, failure }), 500);
    }
    this.readings.forget();
    const { done, total, finished } = result;
    const ids = form.all('id');
    const after =
      steps.action === 'redrive' && ids.length === 1 && isEventId(ids[0])
        ? visit.link(`events/${ids[0]}`)
        : visit.link('dead-letters', { [steps.action]: done });
    if (forScript) return jsonReply({ done, total, finished, after });
    if (finished) return seeOther(after);
    return htmlReply(render(Confirm, { visit, steps: { ...steps, done }, underWay: true }));
  }

  async waiting(visit: Visit, query: Fields): Promise<Reply> {
    const asked = query.text('state');
    const state: WaitingState = asked === 'scheduled' || asked === 'processing' ? asked : 'due';
    const eventType = query.text('type');
    const after = query.text('after') || null;
    const { items, next } = await this.sources.monitor.events({
      state,
      ...(eventType !== '' && { eventType }),
      limit: PAGE_SIZE,
      after,
    });
    const data = { state, eventType, items, next, isFirstPage: after === null };
    return htmlReply(render(Waiting, { visit, data }));
  }

  async event(visit: Visit, id: string): Promise<Reply> {
    const event = isEventId(id) ? await this.sources.monitor.find(id) : null;
    if (event === null) return this.problem(visit, 404, visit.words.noSuchEvent(id));
    const relays = (await this.readings.relays.get()) ?? [];
    const known = [
      ...this.sources.monitor.listeners(),
      ...relays.filter(({ alive }) => alive).flatMap(({ listeners }) => listeners),
    ];
    const { mask } = this.settings;
    const payload = JSON.stringify(masked(event.payload, 'payload', mask), null, 2);
    const metadata = JSON.stringify(masked(event.metadata, 'metadata', mask), null, 2);
    const data = {
      event,
      payload,
      metadata,
      isMasked: mask !== undefined,
      listeners: listenerStates(event, known),
    };
    return htmlReply(render(EventDetail, { visit, data }));
  }

  problem(visit: Visit, status: ProblemStatus, message: string): Reply {
    return htmlReply(render(Problem, { visit, status, message }), status);
  }
}

function chartOf(query: Fields): { span: Span; eventType: string } {
  const span = query.text('span') === 'day' ? 'day' : 'hour';
  return { span, eventType: query.text('type') };
}

function onlyOf(activity: readonly Activity[], eventType: string): readonly Activity[] {
  return eventType === '' ? activity : activity.filter((each) => each.eventType === eventType);
}

function noticeOf({ words }: Visit, query: Fields): string | null {
  const redriven = query.number('redrive', 0);
  if (redriven > 0) return words.redriven(words.number(redriven));
  const discarded = query.number('discard', 0);
  return discarded > 0 ? words.discarded(words.number(discarded)) : null;
}
