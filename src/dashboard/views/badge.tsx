import type { JSX } from 'preact';

/** What a badge says, said once more by its shape: nobody has to tell colours apart. */
const SIGNS = { good: '✓', bad: '✕', warn: '!', calm: '•', busy: '↻' } as const;

export function Badge({ kind, text }: { kind: keyof typeof SIGNS; text: string }): JSX.Element {
  return (
    <span class={`badge ${kind}`}>
      <span aria-hidden="true">{SIGNS[kind]}</span> {text}
    </span>
  );
}
