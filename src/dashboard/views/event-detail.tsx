import type { JSX } from 'preact';
import type { StoredEvent } from '../../store/outbox-store.js';
import type { ListenerState } from '../listener-states.js';
import { Badge } from './badge.js';
import { Carried, Page } from './page.js';
import { Block, Foreign } from './plain.js';
import type { Visit } from './visit.js';
import { When } from './when.js';

export interface EventDetailData {
  readonly event: StoredEvent;
  /** As JSON, masked. */
  readonly payload: string;
  readonly metadata: string;
  readonly isMasked: boolean;
  readonly listeners: readonly ListenerState[];
}

const KINDS = { PENDING: 'calm', PROCESSING: 'busy', COMPLETED: 'good', FAILED: 'bad' } as const;

export function EventDetail({ visit, data }: { visit: Visit; data: EventDetailData }): JSX.Element {
  const { words, link } = visit;
  const { event, payload, metadata, isMasked, listeners } = data;
  return (
    <Page
      visit={visit}
      heading={words.event}
      subject={event.eventType}
      current={event.status === 'FAILED' ? 'dead-letters' : 'events'}
      refreshSeconds={3}
    >
      <p class="event-type">
        <Foreign text={event.eventType} />
      </p>
      <div id="live-event" data-live>
        <Facts visit={visit} event={event} />
        {event.status === 'FAILED' && visit.rights === 'act' && (
          <Actions visit={visit} event={event} />
        )}
        <section aria-labelledby="listeners">
          <h2 id="listeners">{words.listeners}</h2>
          <Listeners visit={visit} listeners={listeners} />
        </section>
        <section aria-labelledby="error">
          <h2 id="error">{words.lastError}</h2>
          {event.lastError === null ? (
            <p class="empty">{words.noError}</p>
          ) : (
            <Block text={event.lastError} label={words.lastError} />
          )}
        </section>
        <PreviousLives visit={visit} event={event} />
      </div>
      <section aria-labelledby="payload">
        <h2 id="payload">{words.payload}</h2>
        {isMasked && <p class="hint">{words.masked}</p>}
        <Block text={payload} label={words.payload} />
      </section>
      <section aria-labelledby="metadata">
        <h2 id="metadata">{words.metadata}</h2>
        <Block text={metadata} label={words.metadata} />
      </section>
      <p>
        <a href={link('dead-letters')}>← {words.back}</a>
      </p>
    </Page>
  );
}

function Facts({ visit, event }: { visit: Visit; event: StoredEvent }): JSX.Element {
  const { words } = visit;
  return (
    <dl class="facts card">
      <div>
        <dt>{words.state}</dt>
        <dd data-status={event.status}>
          <Badge kind={KINDS[event.status]} text={words.status[event.status]} />
        </dd>
      </div>
      <div>
        <dt>{words.failedAttempts}</dt>
        <dd>{words.number(event.retryCount)}</dd>
      </div>
      <div>
        <dt>{words.created}</dt>
        <dd>
          <When visit={visit} at={event.createdAt} />
        </dd>
      </div>
      {event.processedAt === null ? (
        <div>
          <dt>{words.dueAt}</dt>
          <dd>
            <When visit={visit} at={event.scheduledAt} />
          </dd>
        </div>
      ) : (
        <div>
          <dt>{event.status === 'FAILED' ? words.setAside : words.finishedAt}</dt>
          <dd>
            <When visit={visit} at={event.processedAt} />
          </dd>
        </div>
      )}
      {event.leasedUntil !== null && (
        <div>
          <dt>{words.leasedUntil}</dt>
          <dd>
            <When visit={visit} at={event.leasedUntil} />
          </dd>
        </div>
      )}
      {event.unheardSince !== null && (
        <div>
          <dt>{words.unheardSince}</dt>
          <dd>
            <When visit={visit} at={event.unheardSince} />
          </dd>
        </div>
      )}
      <div class="wide">
        <dt>{words.id}</dt>
        <dd class="id">{event.id}</dd>
      </div>
    </dl>
  );
}

function Actions({ visit, event }: { visit: Visit; event: StoredEvent }): JSX.Element {
  const { words, link } = visit;
  return (
    <div class="actions">
      <form method="post" action={link('dead-letters/run')}>
        <Carried visit={visit} />
        <input type="hidden" name="action" value="redrive" />
        <input type="hidden" name="id" value={event.id} />
        <button type="submit" class="primary">
          {words.redrive}
        </button>
      </form>
      <form method="get" action={link('dead-letters/confirm')}>
        <Carried visit={visit} />
        <input type="hidden" name="action" value="discard" />
        <input type="hidden" name="id" value={event.id} />
        <button type="submit" class="danger">
          {words.discard}…
        </button>
      </form>
    </div>
  );
}

function Listeners(props: { visit: Visit; listeners: readonly ListenerState[] }): JSX.Element {
  const { visit, listeners } = props;
  const { words } = visit;
  if (listeners.length === 0) return <p class="empty">{words.noKnownListeners}</p>;
  const badges = {
    succeeded: <Badge kind="good" text={words.succeeded} />,
    failed: <Badge kind="bad" text={words.hasFailed} />,
    open: <Badge kind="calm" text={words.notYet} />,
  };
  return (
    <ul class="listeners">
      {listeners.map(({ name, state }) => (
        <li>
          <Foreign text={name} /> {badges[state]}
        </li>
      ))}
    </ul>
  );
}

function PreviousLives({ visit, event }: { visit: Visit; event: StoredEvent }): JSX.Element | null {
  const { words } = visit;
  if (event.previousLives.length === 0) return null;
  return (
    <section aria-labelledby="lives">
      <h2 id="lives">{words.previousLives}</h2>
      <ol class="lives">
        {event.previousLives.map((life, i) => (
          <li>
            <p class="hint">
              {words.setAside} <When visit={visit} at={life.failedAt} /> · {words.redrivenAt}{' '}
              <When visit={visit} at={life.redrivenAt} /> · {words.failedAttempts}:{' '}
              {words.number(life.retryCount)}
            </p>
            {life.lastError !== null && (
              <Block text={life.lastError} label={`${words.previousLives} ${i + 1}`} />
            )}
          </li>
        ))}
      </ol>
    </section>
  );
}
