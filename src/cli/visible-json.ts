import { OBEYED } from '../event/visible.js';

/** JSON escapes some of them; here all, with the same meaning to whoever parses it. */
export function visibleJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent)
    .split('\n')
    .map((line) => line.replaceAll(OBEYED, escapedAsJson))
    .join('\n');
}

function escapedAsJson(character: string): string {
  return [...Array(character.length).keys()]
    .map((index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`)
    .join('');
}
