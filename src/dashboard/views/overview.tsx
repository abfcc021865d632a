import type { JSX } from 'preact';
import type { GateState, SentinelStats } from '../../store/sentinel-store.js';
import type { KnownListener } from '../../store/activity-store.js';
import type { OutboxStats } from '../../store/outbox-store.js';
import type { MonitoredRelay } from '../../monitor/outbox.monitor.js';
import type { Series, Span, TypeTotal } from '../series.js';
import { Activity } from './activity.js';
import { GateTable } from './gates.js';
import { Page } from './page.js';
import { Plain } from './plain.js';
import { ListenerTable, RelayTable } from './processes.js';
import type { Visit } from './visit.js';
import { Span as Lasted } from './when.js';

export interface OverviewData {
  readonly stats: OutboxStats;
  /** `null`: the store keeps no reports. */
  readonly relays: readonly MonitoredRelay[] | null;
  readonly listeners: readonly KnownListener[];
  /** `null`: the store has no gates. */
  readonly gates: { readonly stats: SentinelStats; readonly failing: readonly GateState[] } | null;
  readonly span: Span;
  readonly eventType: string;
  readonly series: Series;
  readonly totals: readonly TypeTotal[];
}

export function Overview({ visit, data }: { visit: Visit; data: OverviewData }): JSX.Element {
  const { words } = visit;
  const { relays, listeners, gates } = data;
  return (
    <Page visit={visit} heading={words.overview} current="" refreshSeconds={5} charts>
      <div id="live-state" data-live>
        <Troubles visit={visit} data={data} />
        <Tiles visit={visit} stats={data.stats} />
      </div>
      {relays === null ? <p>{words.noReports}</p> : <Activity visit={visit} data={data} />}
      <div class="columns">
        <section aria-labelledby="relays" id="live-relays" data-live>
          <h2 id="relays">{words.relays}</h2>
          <RelayTable visit={visit} relays={(relays ?? []).slice(0, 8)} />
        </section>
        <section aria-labelledby="listeners">
          <h2 id="listeners">{words.thisProcess}</h2>
          <ListenerTable visit={visit} listeners={listeners} />
        </section>
      </div>
      {gates !== null && (
        <section aria-labelledby="gates" id="live-gates" data-live>
          <h2 id="gates">{words.gates}</h2>
          <GateTable visit={visit} gates={gates.failing} />
        </section>
      )}
    </Page>
  );
}

function Troubles({ visit, data }: { visit: Visit; data: OverviewData }): JSX.Element | null {
  const { words } = visit;
  const { relays, stats } = data;
  const noRelay = relays !== null && !relays.some(({ alive }) => alive);
  const unheard = Object.entries(stats.unheard).map(
    ([type, count]) => `${type} (${words.number(count)})`,
  );
  if (!noRelay && unheard.length === 0) return null;
  return (
    <ul class="troubles">
      {noRelay && <li>{words.noRelay}</li>}
      {unheard.length > 0 && (
        <li>
          <Plain text={words.unheard(unheard.join(', '))} />
        </li>
      )}
    </ul>
  );
}

function Tiles({ visit, stats }: { visit: Visit; stats: OutboxStats }): JSX.Element {
  const { words, link } = visit;
  const { number } = words;
  const oldest = stats.oldestDueAgeMs;
  return (
    <ul class="tiles">
      <Tile
        name={words.failedState}
        value={number(stats.failed)}
        hint={stats.failed === 0 ? words.allQuiet : words.failedHint}
        href={link('dead-letters')}
        kind={stats.failed > 0 ? 'bad' : ''}
      />
      <Tile
        name={words.due}
        value={number(stats.due)}
        hint={words.dueHint}
        href={link('events', { state: 'due' })}
      />
      <Tile
        name={words.oldestDue}
        value={oldest === null ? words.nothingDue : <Lasted visit={visit} ms={oldest} />}
        hint={words.oldestDueHint}
        href={link('events', { state: 'due' })}
        kind={(oldest ?? 0) > 300_000 ? 'warn' : ''}
      />
      <Tile
        name={words.processing}
        value={number(stats.processing)}
        hint={words.processingHint}
        href={link('events', { state: 'processing' })}
      />
      <Tile
        name={words.scheduled}
        value={number(stats.scheduled)}
        hint={words.scheduledHint}
        href={link('events', { state: 'scheduled' })}
      />
      <Tile
        name={words.completed}
        value={
          stats.completedEstimate === null ? words.unknown : `≈ ${number(stats.completedEstimate)}`
        }
        hint={words.completedHint}
      />
    </ul>
  );
}

interface TileProps {
  readonly name: string;
  readonly value: JSX.Element | string;
  readonly hint: string;
  readonly href?: string;
  readonly kind?: '' | 'bad' | 'warn';
}

function Tile({ name, value, hint, href, kind = '' }: TileProps): JSX.Element {
  const inside = (
    <>
      <span class="tile-name">{name}</span>
      <strong class="tile-value">{value}</strong>
      <span class="tile-hint">{hint}</span>
    </>
  );
  return (
    <li class={`tile ${kind}`}>
      {href === undefined ? <div>{inside}</div> : <a href={href}>{inside}</a>}
    </li>
  );
}
