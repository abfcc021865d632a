import type { JSX } from 'preact';
import type { ListedEvent } from '../../store/outbox-store.js';
import { Carried, Page } from './page.js';
import { Foreign } from './plain.js';
import type { Visit } from './visit.js';
import { When } from './when.js';

export type WaitingState = 'due' | 'scheduled' | 'processing';

export interface WaitingData {
  readonly state: WaitingState;
  readonly eventType: string;
  readonly items: readonly ListedEvent[];
  readonly next: string | null;
  readonly isFirstPage: boolean;
}

/** Events that are not finished. */
export function Waiting({ visit, data }: { visit: Visit; data: WaitingData }): JSX.Element {
  const { words, link } = visit;
  const { state, eventType, items, next, isFirstPage } = data;
  return (
    <Page visit={visit} heading={words.waiting} current="events">
      <p class="hint">{words.waitingHint}</p>
      <div class="section-head">
        <nav class="switch" aria-label={words.state}>
          <ul>
            {(['due', 'scheduled', 'processing'] as const).map((each) => (
              <li>
                <a
                  href={link('events', { state: each, type: eventType })}
                  aria-current={each === state ? 'page' : undefined}
                >
                  {words[each]}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <search>
          <form method="get" action={link('events')} class="search small">
            <Carried visit={visit} />
            <input type="hidden" name="state" value={state} />
            <label>
              {words.eventType}
              <input type="text" name="type" value={eventType} maxLength={255} autocomplete="off" />
            </label>
            <div class="actions">
              <button type="submit">{words.search}</button>
            </div>
          </form>
        </search>
      </div>
      {items.length === 0 ? (
        <p class="empty">{words.nothingHere}</p>
      ) : (
        <List visit={visit} state={state} items={items} />
      )}
      {(!isFirstPage || next !== null) && (
        <nav class="pager" aria-label={words.paging}>
          {!isFirstPage && (
            <a href={link('events', { state, type: eventType })}>{words.firstPage}</a>
          )}
          {next !== null && (
            <a href={link('events', { state, type: eventType, after: next })} rel="next">
              {words.laterOnes}
            </a>
          )}
        </nav>
      )}
    </Page>
  );
}

interface ListProps {
  readonly visit: Visit;
  readonly state: WaitingState;
  readonly items: readonly ListedEvent[];
}

function List({ visit, state, items }: ListProps): JSX.Element {
  const { words, link } = visit;
  const last = state === 'processing' ? words.leasedUntil : words.lastError;
  return (
    <table class="stacked events">
      <caption class="unseen">{words[state]}</caption>
      <thead>
        <tr>
          <th scope="col">{words.event}</th>
          <th scope="col">{words.dueAt}</th>
          <th scope="col">{words.failedAttempts}</th>
          <th scope="col">{last}</th>
        </tr>
      </thead>
      <tbody>
        {items.map((item) => (
          <tr>
            <th scope="row">
              <a href={link(`events/${encodeURIComponent(item.id)}`)}>
                <Foreign text={item.eventType} />
              </a>
              <span class="id">{item.id}</span>
            </th>
            <td data-label={words.dueAt}>
              <When visit={visit} at={item.scheduledAt} />
            </td>
            <td data-label={words.failedAttempts}>{words.number(item.retryCount)}</td>
            <td data-label={last} class="error-text">
              {state === 'processing' ? (
                <When visit={visit} at={item.leasedUntil} />
              ) : item.lastError === null ? (
                '–'
              ) : (
                <Foreign text={item.lastError.slice(0, 240)} />
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
