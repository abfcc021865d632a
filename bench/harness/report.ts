/** What a scenario found. */
export interface Report {
  readonly tables: readonly Table[];
  /** Figures that the documentation quotes in its text, by name. */
  readonly figures: Readonly<Record<string, string>>;
  /** Every single measurement, for build/bench/results.json. */
  readonly raw: unknown;
}

export interface Table {
  readonly caption: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** Numbers right, the first column left. */
export function toMarkdown({ caption, columns, rows }: Table): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  const rule = columns.map((_, i) => (i === 0 || !isNumeric(rows, i) ? '---' : '--:'));
  return [caption, '', line(columns), line(rule), ...rows.map(line)].join('\n');
}

/** For the terminal. */
export function toText({ caption, columns, rows }: Table): string {
  const plain = (cell: string): string => cell.replaceAll(/\*\*|`/g, '');
  const all = [columns, ...rows].map((row) => row.map(plain));
  const widths = columns.map((_, i) => Math.max(...all.map((row) => (row[i] ?? '').length)));
  const lines = all.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  return [caption, ...lines].join('\n');
}

function isNumeric(rows: Table['rows'], column: number): boolean {
  return rows.every((row) => /^[\d.,–%×\s()+-]*$/.test(row[column] ?? ''));
}

/** 12,345 above ten, 1.23 below. */
export function number(value: number | undefined): string {
  if (value === undefined || Number.isNaN(value)) return '–';
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toLocaleString('en-US', {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}

/** Three digits that mean something: 12,345 → 12,300. */
export function rate(value: number): string {
  if (Number.isNaN(value)) return '–';
  if (value < 1_000) return Math.round(value).toLocaleString('en-US');
  const unit = 10 ** (Math.floor(Math.log10(value)) - 2);
  return (Math.round(value / unit) * unit).toLocaleString('en-US');
}

export function range(values: readonly number[], format: (value: number) => string): string {
  return values.length === 0
    ? '–'
    : `${format(Math.min(...values))}–${format(Math.max(...values))}`;
}

export function ratio(value: number): string {
  return Number.isNaN(value) ? '–' : value.toFixed(2);
}

export function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1_048_576)} MiB`;
}
