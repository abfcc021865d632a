import type { JSX } from 'preact';
import type { GateState } from '../../store/sentinel-store.js';
import { Badge } from './badge.js';
import { Carried, Page } from './page.js';
import { Foreign } from './plain.js';
import type { Visit } from './visit.js';
import { When } from './when.js';

interface GatesProps {
  readonly visit: Visit;
  /** `null`: the store has none. */
  readonly gates: readonly GateState[] | null;
  readonly reopened: boolean;
}

/** Work that is done once, and what hinders it. */
export function Gates({ visit, gates, reopened }: GatesProps): JSX.Element {
  const { words } = visit;
  return (
    <Page visit={visit} heading={words.gates} current="gates" refreshSeconds={5}>
      <p class="hint">{words.gatesHint}</p>
      {reopened && (
        <p class="notice" role="status">
          {words.reopened}
        </p>
      )}
      <div id="live-gates" data-live>
        <GateTable visit={visit} gates={gates ?? []} />
      </div>
    </Page>
  );
}

export function GateTable(props: { visit: Visit; gates: readonly GateState[] }): JSX.Element {
  const { visit, gates } = props;
  const { words } = visit;
  if (gates.length === 0) return <p class="empty">{words.noGates}</p>;
  return (
    <table class="stacked">
      <caption class="unseen">{words.gates}</caption>
      <thead>
        <tr>
          <th scope="col">{words.gate}</th>
          <th scope="col">{words.state}</th>
          <th scope="col">{words.failures}</th>
          <th scope="col">{words.lastError}</th>
        </tr>
      </thead>
      <tbody>
        {gates.map((gate) => (
          <tr>
            <th scope="row">
              <Foreign text={gate.key} />{' '}
              <span class="hint">
                <Foreign text={gate.version} />
              </span>
            </th>
            <td data-label={words.state}>
              <GateBadge visit={visit} gate={gate} />
            </td>
            <td data-label={words.failures}>{words.number(gate.failures)}</td>
            <td data-label={words.lastError} class="error-text">
              {gate.lastError === null ? '–' : <Foreign text={gate.lastError} />}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function GateBadge({ visit, gate }: { visit: Visit; gate: GateState }): JSX.Element {
  const { words, link, rights } = visit;
  if (gate.running) return <Badge kind="busy" text={words.running} />;
  if (gate.closed) {
    return (
      <>
        <Badge kind="bad" text={words.closedUntil} /> <When visit={visit} at={gate.closedUntil} />
        {rights === 'act' && (
          <form method="post" action={link('gates/reopen')} class="inline">
            <Carried visit={visit} />
            <input type="hidden" name="key" value={gate.key} />
            <input type="hidden" name="version" value={gate.version} />
            <button type="submit">{words.reopen}</button>
          </form>
        )}
      </>
    );
  }
  if (gate.failures > 0) return <Badge kind="warn" text={words.failing} />;
  if (gate.stampedAt === null) return <Badge kind="calm" text={words.open} />;
  return (
    <>
      <Badge kind="good" text={words.stamped} /> <When visit={visit} at={gate.stampedAt} />
    </>
  );
}
