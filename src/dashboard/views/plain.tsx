import type { JSX } from 'preact';
import { visible } from '../visible.js';

/** Text from outside where no element may stand, e.g. in a title. */
export function Plain({ text }: { text: string }): JSX.Element {
  return <>{visible(text)}</>;
}

/** Text from outside: whatever its direction, it does not turn what stands around it. */
export function Foreign({ text }: { text: string }): JSX.Element {
  return <bdi>{visible(text)}</bdi>;
}

/** Text from outside with its line breaks. */
export function Block({ text, label }: { text: string; label: string }): JSX.Element {
  return (
    // Scrollable, so it must be reachable by keyboard.
    <pre tabIndex={0} role="group" aria-label={label}>
      <bdi>{visible(text)}</bdi>
    </pre>
  );
}
