import type { JSX } from 'preact';
import type { KnownListener } from '../../store/activity-store.js';
import type { MonitoredRelay } from '../../monitor/outbox.monitor.js';
import { Badge } from './badge.js';
import { Page } from './page.js';
import { Foreign } from './plain.js';
import type { Visit } from './visit.js';
import { Span } from './when.js';

interface ProcessesData {
  readonly relays: readonly MonitoredRelay[] | null;
  readonly listeners: readonly KnownListener[];
}

/** Who delivers, and to whom. */
export function Processes({ visit, data }: { visit: Visit; data: ProcessesData }): JSX.Element {
  const { words } = visit;
  return (
    <Page visit={visit} heading={words.processes} current="processes" refreshSeconds={5}>
      <section aria-labelledby="relays" id="live-relays" data-live>
        <h2 id="relays">{words.relays}</h2>
        {data.relays === null ? (
          <p class="empty">{words.noReports}</p>
        ) : (
          <RelayTable visit={visit} relays={data.relays} withListeners />
        )}
      </section>
      <section aria-labelledby="listeners">
        <h2 id="listeners">{words.thisProcess}</h2>
        <ListenerTable visit={visit} listeners={data.listeners} />
      </section>
    </Page>
  );
}

interface RelayTableProps {
  readonly visit: Visit;
  readonly relays: readonly MonitoredRelay[];
  readonly withListeners?: boolean;
}

export function RelayTable({ visit, relays, withListeners = false }: RelayTableProps): JSX.Element {
  const { words } = visit;
  if (relays.length === 0) return <p class="empty">{words.noRelays}</p>;
  return (
    <table class="stacked">
      <caption class="unseen">{words.relays}</caption>
      <thead>
        <tr>
          <th scope="col">{words.relay}</th>
          <th scope="col">{words.state}</th>
          <th scope="col">{words.lastSeen}</th>
          <th scope="col">{words.version}</th>
          {withListeners && <th scope="col">{words.listeners}</th>}
        </tr>
      </thead>
      <tbody>
        {relays.map((relay) => (
          <tr>
            <th scope="row">
              <Foreign text={relay.name} />
            </th>
            <td data-label={words.state}>
              <RelayBadge visit={visit} relay={relay} />
            </td>
            <td data-label={words.lastSeen}>
              {words.ago(words.duration(Math.max(0, relay.silentMs) / 1_000))}
            </td>
            <td data-label={words.version}>
              <Foreign text={relay.version} />
            </td>
            {withListeners && (
              <td data-label={words.listeners}>
                <ul class="plain">
                  {relay.listeners.map(({ name, event }) => (
                    <li>
                      <Foreign text={name} />{' '}
                      <span class="hint">
                        <Foreign text={event} />
                      </span>
                    </li>
                  ))}
                </ul>
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function RelayBadge({ visit, relay }: { visit: Visit; relay: MonitoredRelay }): JSX.Element {
  const { words } = visit;
  if (relay.alive) return <Badge kind="good" text={words.alive} />;
  if (relay.stoppedAt !== null) return <Badge kind="calm" text={words.ended} />;
  return (
    <>
      <Badge kind="bad" text={words.silent} /> <Span visit={visit} ms={relay.silentMs} />
    </>
  );
}

interface ListenerTableProps {
  readonly visit: Visit;
  readonly listeners: readonly KnownListener[];
}

export function ListenerTable({ visit, listeners }: ListenerTableProps): JSX.Element {
  const { words } = visit;
  if (listeners.length === 0) return <p class="empty">{words.noListeners}</p>;
  return (
    <table class="stacked">
      <caption class="unseen">{words.thisProcess}</caption>
      <thead>
        <tr>
          <th scope="col">{words.listener}</th>
          <th scope="col">{words.listensTo}</th>
        </tr>
      </thead>
      <tbody>
        {listeners.map(({ name, event }) => (
          <tr>
            <th scope="row">
              <Foreign text={name} />
            </th>
            <td data-label={words.listensTo}>
              <Foreign text={event} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
