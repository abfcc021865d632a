/**
 * What a terminal does not show but obeys: control characters (C0, C1, DEL), those that turn the direction of writing,
 * invisible ones, line and paragraph separators, lone surrogates. Event types, errors and payloads come from outside;
 * an escape sequence in them could rewrite what stands on the screen, its title, or the clipboard.
 */
export const OBEYED = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** The text in one line that a terminal shows and does not obey. */
export function visible(text: string): string {
  return text.replaceAll(OBEYED, (character) => SHORT[character] ?? escaped(character));
}

/** The same, lines kept. */
export function visibleLines(text: string): string {
  return text
    .split(/\r?\n/)
    .map((line) => visible(line))
    .join('\n');
}

function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return code < 0x100
    ? `\\x${code.toString(16).padStart(2, '0')}`
    : `\\u{${code.toString(16).padStart(4, '0')}}`;
}
