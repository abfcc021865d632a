import type { JSX } from 'preact';
import type { DeadLetter } from '../../store/outbox-store.js';
import { queryOf, type DeadLetterSearch } from '../dead-letter-search.js';
import { Carried, Page } from './page.js';
import { Foreign } from './plain.js';
import type { Visit } from './visit.js';
import { When } from './when.js';

export interface DeadLettersData {
  readonly search: DeadLetterSearch;
  readonly items: readonly DeadLetter[];
  readonly next: string | null;
  readonly isFirstPage: boolean;
  /** Of all that match. */
  readonly count: number;
  /** What was done just now, as a sentence. */
  readonly notice: string | null;
}

export function DeadLetters({ visit, data }: { visit: Visit; data: DeadLettersData }): JSX.Element {
  const { words, link } = visit;
  const { search, items, next, isFirstPage, count, notice } = data;
  const { number } = words;
  const isSearch = Object.values(queryOf(search)).some((value) => value !== '');
  return (
    <Page visit={visit} heading={words.deadLetters} current="dead-letters">
      {notice !== null && (
        <p class="notice" role="status">
          {notice}
        </p>
      )}
      <SearchForm visit={visit} search={search} isSearch={isSearch} />
      {items.length === 0 ? (
        <p class="empty">{isSearch || !isFirstPage ? words.noneFound : words.noDeadLetters}</p>
      ) : (
        <>
          <div class="section-head">
            <p class="count">{words.found(number(count))}</p>
            {visit.rights === 'act' && <AllForm visit={visit} search={search} count={count} />}
          </div>
          <form method="get" action={link('dead-letters/confirm')} data-selection>
            <Carried visit={visit} />
            {visit.rights === 'act' && (
              <div class="actions selection">
                <label class="select-all" hidden>
                  <input type="checkbox" data-select-all /> {words.selectAll}
                </label>
                <span class="hint">{words.withSelected}</span>
                <button type="submit" name="action" value="redrive">
                  {words.redrive}
                </button>
                <button type="submit" name="action" value="discard" class="danger">
                  {words.discard}
                </button>
                <span aria-live="polite" data-selected={words.selected('{}')} />
              </div>
            )}
            <List visit={visit} items={items} />
          </form>
        </>
      )}
      {(!isFirstPage || next !== null) && (
        <nav class="pager" aria-label={words.paging}>
          {!isFirstPage && <a href={link('dead-letters', queryOf(search))}>{words.firstPage}</a>}
          {next !== null && (
            <a href={link('dead-letters', { ...queryOf(search), after: next })} rel="next">
              {words.olderOnes}
            </a>
          )}
        </nav>
      )}
    </Page>
  );
}

interface SearchFormProps {
  readonly visit: Visit;
  readonly search: DeadLetterSearch;
  readonly isSearch: boolean;
}

function SearchForm({ visit, search, isSearch }: SearchFormProps): JSX.Element {
  const { words, link } = visit;
  const spans = {
    '': words.anyTime,
    hour: words.pastHour,
    day: words.pastDay,
    week: words.pastWeek,
  };
  return (
    <search>
      <form method="get" action={link('dead-letters')} class="search">
        <Carried visit={visit} />
        <label class="wide">
          {words.searchLabel}
          <input type="search" name="q" value={search.text} maxLength={200} autocomplete="off" />
        </label>
        <label>
          {words.eventType}
          <input
            type="text"
            name="type"
            value={search.eventType}
            maxLength={255}
            autocomplete="off"
          />
        </label>
        <label>
          {words.within}
          <select name="within">
            {Object.entries(spans).map(([value, name]) => (
              <option value={value} selected={value === search.within}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <div class="actions">
          <button type="submit" class="primary">
            {words.search}
          </button>
          {isSearch && <a href={link('dead-letters')}>{words.clear}</a>}
        </div>
      </form>
    </search>
  );
}

function AllForm(props: { visit: Visit; search: DeadLetterSearch; count: number }): JSX.Element {
  const { visit, search, count } = props;
  const { words, link } = visit;
  return (
    <form method="get" action={link('dead-letters/confirm')} class="actions">
      <Carried visit={visit} />
      {Object.entries(queryOf(search)).map(
        ([name, value]) => value !== '' && <input type="hidden" name={name} value={value} />,
      )}
      <input type="hidden" name="all" value="yes" />
      <span class="hint">{words.withAll(words.number(count))}</span>
      <button type="submit" name="action" value="redrive">
        {words.redrive}
      </button>
      <button type="submit" name="action" value="discard" class="danger">
        {words.discard}
      </button>
    </form>
  );
}

function List({ visit, items }: { visit: Visit; items: readonly DeadLetter[] }): JSX.Element {
  const { words, link, rights } = visit;
  return (
    <table class="stacked events">
      <caption class="unseen">{words.deadLetters}</caption>
      <thead>
        <tr>
          {rights === 'act' && (
            <td>
              <span class="unseen">{words.select('')}</span>
            </td>
          )}
          <th scope="col">{words.event}</th>
          <th scope="col">{words.error}</th>
          <th scope="col">{words.attempts}</th>
          <th scope="col">{words.setAside}</th>
        </tr>
      </thead>
      <tbody>
        {items.map((item) => (
          <tr>
            {rights === 'act' && (
              <td class="pick">
                <input
                  type="checkbox"
                  name="id"
                  value={item.id}
                  aria-label={words.select(item.id)}
                />
              </td>
            )}
            <th scope="row">
              <a href={link(`events/${encodeURIComponent(item.id)}`)}>
                <Foreign text={item.eventType} />
              </a>
              <span class="id">{item.id}</span>
            </th>
            <td data-label={words.error} class="error-text">
              {item.lastError === null ? '–' : <Foreign text={shortened(item.lastError)} />}
            </td>
            <td data-label={words.attempts}>{words.number(item.retryCount)}</td>
            <td data-label={words.setAside}>
              <When visit={visit} at={item.failedAt} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const LONGEST = 240;

function shortened(text: string): string {
  const characters = [...text];
  return characters.length > LONGEST ? `${characters.slice(0, LONGEST).join('')}…` : text;
}
