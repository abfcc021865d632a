import type { JSX } from 'preact';
import type { Series, Span, TypeTotal } from '../series.js';
import { Foreign } from './plain.js';
import type { Visit } from './visit.js';
import { When } from './when.js';

interface ActivityData {
  readonly span: Span;
  readonly eventType: string;
  readonly series: Series;
  readonly totals: readonly TypeTotal[];
}

/** What was delivered and what failed, as charts and as tables. */
export function Activity({ visit, data }: { visit: Visit; data: ActivityData }): JSX.Element {
  const { words, link } = visit;
  const { span, eventType, series } = data;
  const url = link('activity.json', { span, type: eventType });
  const label = `${words.perMinute}, ${span === 'hour' ? words.lastHour : words.lastDay}`;
  return (
    <section aria-labelledby="activity">
      <div class="section-head">
        <h2 id="activity">{words.activity}</h2>
        <nav class="switch" aria-label={words.span}>
          <ul>
            {(['hour', 'day'] as const).map((each) => (
              <li>
                <a
                  href={link('', { span: each, type: eventType })}
                  aria-current={each === span ? 'true' : undefined}
                >
                  {each === 'hour' ? words.lastHour : words.lastDay}
                </a>
              </li>
            ))}
          </ul>
        </nav>
      </div>
      {eventType !== '' && (
        <p class="chip">
          {words.onlyType}: <Foreign text={eventType} />{' '}
          <a href={link('', { span })}>{words.allTypes}</a>
        </p>
      )}
      <div class="charts">
        <Chart
          title={words.delivered}
          label={label}
          url={url}
          lines={['delivered']}
          visit={visit}
        />
        <Chart
          title={`${words.failed} / ${words.retried}`}
          label={label}
          url={url}
          lines={['failed', 'retried']}
          visit={visit}
        />
      </div>
      <div id="live-activity" data-live>
        <TypeTable visit={visit} data={data} />
        <details>
          <summary>{words.asTable}</summary>
          <StepTable visit={visit} series={series} label={label} />
        </details>
      </div>
      <p class="hint">{words.activityHint}</p>
    </section>
  );
}

interface ChartProps {
  readonly title: string;
  readonly label: string;
  readonly url: string;
  readonly lines: readonly ('delivered' | 'retried' | 'failed')[];
  readonly visit: Visit;
}

function Chart({ title, label, url, lines, visit }: ChartProps): JSX.Element {
  const { words } = visit;
  return (
    <figure class="card">
      <figcaption>
        <span class="chart-title">{title}</span> <span class="hint">{words.perMinute}</span>
      </figcaption>
      <div
        class="chart"
        role="img"
        aria-label={`${title}: ${label}`}
        data-chart={url}
        data-lines={lines.join(' ')}
        data-names={JSON.stringify(lines.map((line) => words[line]))}
        data-time={words.time}
        data-zone={visit.timeZone}
      />
    </figure>
  );
}

function TypeTable({ visit, data }: { visit: Visit; data: ActivityData }): JSX.Element {
  const { words, link } = visit;
  const { span, eventType, totals } = data;
  if (totals.length === 0) return <p class="empty">{words.noActivity}</p>;
  return (
    <table class="numbers">
      <caption>
        {words.byType} · {span === 'hour' ? words.lastHour : words.lastDay}
      </caption>
      <thead>
        <tr>
          <th scope="col">{words.eventType}</th>
          <th scope="col">{words.delivered}</th>
          <th scope="col">{words.retried}</th>
          <th scope="col">{words.failed}</th>
        </tr>
      </thead>
      <tbody>
        {totals.slice(0, 50).map((total) => (
          <tr>
            <th scope="row">
              <a
                href={link('', { span, type: total.eventType })}
                aria-current={total.eventType === eventType ? 'true' : undefined}
              >
                <Foreign text={total.eventType} />
              </a>
            </th>
            <td>{words.number(total.delivered)}</td>
            <td>{words.number(total.retried)}</td>
            <td class={total.failed > 0 ? 'bad' : ''}>{words.number(total.failed)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function StepTable(props: { visit: Visit; series: Series; label: string }): JSX.Element {
  const { visit, series, label } = props;
  const { words } = visit;
  const busy = series.at
    .map((at, i) => ({
      at,
      delivered: series.delivered[i] ?? 0,
      retried: series.retried[i] ?? 0,
      failed: series.failed[i] ?? 0,
    }))
    .filter(({ delivered, retried, failed }) => delivered + retried + failed > 0)
    .toReversed();
  if (busy.length === 0) return <p class="empty">{words.noActivity}</p>;
  return (
    <table class="numbers">
      <caption>{label}</caption>
      <thead>
        <tr>
          <th scope="col">{words.time}</th>
          <th scope="col">{words.delivered}</th>
          <th scope="col">{words.retried}</th>
          <th scope="col">{words.failed}</th>
        </tr>
      </thead>
      <tbody>
        {busy.map((step) => (
          <tr>
            <th scope="row">
              <When visit={visit} at={new Date(step.at * 1_000)} short />
            </th>
            <td>{words.number(step.delivered)}</td>
            <td>{words.number(step.retried)}</td>
            <td>{words.number(step.failed)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
