import type { JSX } from 'preact';
import { Carried, Page } from './page.js';
import type { Visit } from './visit.js';

export type Action = 'redrive' | 'discard';

/** A piece of work in steps: what is sent with each. */
export interface Steps {
  readonly action: Action;
  /** Fields of the filter, or the ids. */
  readonly which: readonly (readonly [name: string, value: string])[];
  readonly total: number;
  readonly done: number;
  readonly perSecond: number;
}

interface ConfirmProps {
  readonly visit: Visit;
  readonly steps: Steps;
  /** Without JavaScript, between two steps. */
  readonly underWay?: boolean;
  /** Why the last step failed. */
  readonly failure?: string | null;
}

/** Asks before it is done, and tells how far it is. */
export function Confirm(props: ConfirmProps): JSX.Element {
  const { visit, steps, underWay = false, failure = null } = props;
  const { words, link } = visit;
  const { action, total, done } = steps;
  const { number } = words;
  const question = action === 'redrive' ? words.confirmRedrive : words.confirmDiscard;
  const verb = action === 'redrive' ? words.redrive : words.discard;
  if (total === 0) {
    return (
      <Page visit={visit} heading={verb} current="dead-letters">
        <p class="empty">{words.nothingLeft}</p>
        <p>
          <a href={link('dead-letters')}>← {words.deadLetters}</a>
        </p>
      </Page>
    );
  }
  return (
    <Page visit={visit} heading={question(number(total))} current="dead-letters">
      <p>{action === 'redrive' ? words.redriveMeans : words.discardMeans}</p>
      <form
        method="post"
        action={link('dead-letters/run')}
        class="card confirm"
        data-steps
        data-progress={words.progressOf('{done}', '{total}')}
        data-failed={words.stepFailed}
        data-continue={words.continue}
        data-stop={words.stop}
      >
        <Carried visit={visit} />
        <input type="hidden" name="action" value={action} />
        <input type="hidden" name="total" value={total} />
        <input type="hidden" name="done" value={done} />
        {steps.which.map(([name, value]) => (
          <input type="hidden" name={name} value={value} />
        ))}
        {action === 'redrive' && total > 1 && <Rate visit={visit} steps={steps} fixed={underWay} />}
        <div class="progress" hidden={!underWay}>
          <label for="progress">{words.progress}</label>
          <progress id="progress" max={total} value={done} />
          <p aria-live="polite" data-progress-text>
            {words.progressOf(number(done), number(total))}
          </p>
        </div>
        <p class="trouble" role="alert" data-failure hidden={failure === null}>
          {failure !== null && `${words.stepFailed} ${failure}`}
        </p>
        <div class="actions">
          <button type="submit" class={action === 'discard' ? 'danger solid' : 'primary'}>
            {underWay ? words.continue : verb}
          </button>
          <a href={link('dead-letters')} data-cancel>
            {underWay ? words.stop : words.cancel}
          </a>
        </div>
      </form>
    </Page>
  );
}

function Rate(props: { visit: Visit; steps: Steps; fixed: boolean }): JSX.Element {
  const { visit, steps, fixed } = props;
  const { words } = visit;
  return (
    <div class="rate">
      <label for="per-second">{words.perSecond}</label>
      <input
        id="per-second"
        type="number"
        name="perSecond"
        min={1}
        max={10_000}
        value={steps.perSecond}
        readOnly={fixed}
        aria-describedby="per-second-hint"
      />
      <p class="hint" id="per-second-hint">
        {words.perSecondHint}
      </p>
    </div>
  );
}
