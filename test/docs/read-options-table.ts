import { readMarkdown } from './markdown.js';

export interface OptionRow {
  name: string;
  /** The literal in backticks, as a value; `undefined` where there is none. */
  defaultValue: unknown;
  bounds: [min: number, max: number] | undefined;
  meaning: string;
}

/** The table of the module's options: that of enqueue's has fewer columns. */
export function readOptionsTable(file: string): OptionRow[] {
  const table = readMarkdown(file).tables.find(
    ([header]) => header?.length === 4 && /^(option|옵션)$/.test(header[0] ?? ''),
  );
  if (!table) throw new Error(`${file} has no table of options`);
  return table.slice(1).map(([name = '', defaultText = '', boundsText = '', meaning = '']) => {
    const [, literal] = /^`([^`]+)`/.exec(defaultText) ?? [];
    const [, min, max] = /^([\d_]+)–([\d_]+)$/.exec(boundsText) ?? [];
    return {
      name: name.replaceAll('`', ''),
      defaultValue: literal === undefined ? undefined : valueOf(literal),
      bounds: min === undefined || max === undefined ? undefined : [numberOf(min), numberOf(max)],
      meaning,
    };
  });
}

function valueOf(literal: string): unknown {
  if (/^[\d_]+$/.test(literal)) return numberOf(literal);
  return JSON.parse(literal.replaceAll("'", '"'));
}

function numberOf(text: string): number {
  return Number(text.replaceAll('_', ''));
}
