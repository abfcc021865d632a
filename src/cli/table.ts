import stringWidth from 'string-width';
import { visible } from '../event/visible.js';

export interface Column<Row> {
  readonly title: string;
  readonly of: (row: Row) => string;
  /** Numbers. */
  readonly right?: boolean;
}

const GAP = '  ';
const NARROWEST = 8;

/**
 * Rows under each other, aligned by the columns a terminal gives them: a Korean letter takes two.
 * @param width no line is wider, as far as that goes; Infinity where nobody reads it on a screen
 */
export function table<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  width: number,
): string {
  const cells = [
    columns.map(({ title }) => title),
    ...rows.map((row) => columns.map((column) => visible(column.of(row)))),
  ];
  const widths = fitted(
    columns.map((_, index) => Math.max(...cells.map((line) => stringWidth(line[index] ?? '')))),
    width,
  );
  return cells
    .map((line) =>
      line
        .map((cell, index) => aligned(cell, widths[index] ?? 0, columns[index]?.right === true))
        .join(GAP)
        .trimEnd(),
    )
    .join('\n');
}

/** Takes from the widest until all fit. */
function fitted(widths: number[], width: number): number[] {
  const fit = [...widths];
  let over = fit.reduce((sum, one) => sum + one, 0) + GAP.length * (fit.length - 1) - width;
  while (over > 0) {
    const widest = Math.max(...fit);
    if (widest <= NARROWEST) break;
    fit[fit.indexOf(widest)] = widest - 1;
    over--;
  }
  return fit;
}

function aligned(cell: string, width: number, right: boolean): string {
  const text = cut(cell, width);
  const space = ' '.repeat(Math.max(0, width - stringWidth(text)));
  return right ? space + text : text + space;
}

/** Never in the middle of what is seen as one character. */
function cut(text: string, width: number): string {
  if (stringWidth(text) <= width) return text;
  let kept = '';
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    if (stringWidth(kept + segment) > width - 1) break;
    kept += segment;
  }
  return `${kept}…`;
}
