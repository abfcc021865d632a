/** Puts results where the documentation has left room for them. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import prettier from 'prettier';
import { RESULTS, ROOT } from './places.ts';
import { toMarkdown, type Report } from './report.ts';

const BENCHMARKS = path.join(ROOT, 'docs', 'benchmarks.md');
/** Quotes figures, has no tables of its own. */
const QUOTING = [path.join(ROOT, 'docs', 'scaling.md')];

/** Copies that this run has begun: an older one may lack the room for a table. */
const begun = new Set<string>();

export interface Destination {
  /** Into the documentation itself, or into a copy below build/bench. */
  readonly published: boolean;
}

/**
 * Replaces the table between `<!-- bench:<scenario> -->` and `<!-- /bench:<scenario> -->`, and in all texts each
 * figure between `<!-- figure:<name> -->` and `<!-- /figure -->`.
 * @returns the file with the tables
 */
export async function publish(
  scenario: string,
  report: Report,
  conditions: string,
  { published }: Destination,
): Promise<string> {
  const tables = report.tables.map(toMarkdown).join('\n\n');
  const written = [BENCHMARKS, ...QUOTING].map((source) => {
    const target = published ? source : path.join(RESULTS, path.basename(source));
    return { source, target };
  });
  mkdirSync(RESULTS, { recursive: true });
  for (const { source, target } of written) {
    const before = readFileSync(begun.has(target) ? target : source, 'utf8');
    begun.add(target);
    const withTables =
      source === BENCHMARKS
        ? replaceSection(before, scenario, `_${conditions}_\n\n${tables}`)
        : before;
    const after = replaceFigures(withTables, report.figures);
    const options = await prettier.resolveConfig(source);
    writeFileSync(target, await prettier.format(after, { ...options, parser: 'markdown' }));
  }
  return written[0]?.target ?? BENCHMARKS;
}

/** @throws Error if there is no room for it */
function replaceSection(text: string, scenario: string, content: string): string {
  const [open, close] = [`<!-- bench:${scenario} -->`, `<!-- /bench:${scenario} -->`];
  const from = text.indexOf(open);
  const to = text.indexOf(close);
  if (from < 0 || to < from) throw new Error(`docs/benchmarks.md lacks ${open} … ${close}`);
  return `${text.slice(0, from + open.length)}\n\n${content}\n\n${text.slice(to)}`;
}

function replaceFigures(text: string, figures: Report['figures']): string {
  return text.replaceAll(
    /(<!-- figure:(\S+) -->)[^<]*(<!-- \/figure -->)/g,
    (all, open: string, name: string, close: string) => {
      const figure = figures[name];
      return figure === undefined ? all : `${open}${figure}${close}`;
    },
  );
}
