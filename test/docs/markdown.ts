import { existsSync, readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';

export const ROOT = path.resolve(import.meta.dirname, '..', '..');

export interface CodeBlock {
  /** `ts`, `bash`, `sql`, … */
  lang: string;
  code: string;
  /** Of its first line of code, from 1. */
  line: number;
}

export interface Link {
  target: string;
  line: number;
}

export interface Heading {
  level: number;
  text: string;
  anchor: string;
}

export interface Markdown {
  /** From the root of the repository. */
  file: string;
  blocks: CodeBlock[];
  links: Link[];
  headings: Heading[];
  /** Cells of every table row but the one of dashes. */
  tables: string[][][];
}

export function readMarkdown(file: string): Markdown {
  const lines = readFileSync(path.join(ROOT, file), 'utf8').split('\n');
  const markdown: Markdown = { file, blocks: [], links: [], headings: [], tables: [] };
  let block: CodeBlock | undefined;
  let table: string[][] | undefined;

  for (const [index, line] of lines.entries()) {
    const fence = /^\s*```(\w*)/.exec(line);
    if (fence && block) block = undefined;
    else if (fence) {
      block = { lang: fence[1] ?? '', code: '', line: index + 2 };
      markdown.blocks.push(block);
    } else if (block) block.code += `${line}\n`;
    else {
      table = readTableRow(line, markdown, table);
      readProse(line, index + 1, markdown);
    }
  }
  if (block) throw new Error(`${file}:${block.line} a code block is not closed`);
  return markdown;
}

function readTableRow(line: string, { tables }: Markdown, table?: string[][]) {
  if (!line.startsWith('|')) return undefined;
  const current = table ?? [];
  if (!table) tables.push(current);
  const cells = line.split('|').slice(1, -1);
  if (!cells.every((cell) => /^\s*:?-+:?\s*$/.test(cell))) {
    current.push(cells.map((cell) => cell.trim()));
  }
  return current;
}

function readProse(line: string, lineNumber: number, { headings, links }: Markdown): void {
  const heading = /^(#+) (.*)$/.exec(line);
  if (heading) {
    const [, hashes = '', text = ''] = heading;
    const base = slugOf(text);
    const same = headings.filter(({ anchor }) => anchor.replace(/-\d+$/, '') === base).length;
    headings.push({ level: hashes.length, text, anchor: same ? `${base}-${same}` : base });
  }
  // What stands in backticks is no link: `readonly [K in keyof T](…)`.
  for (const match of line.replaceAll(/`[^`]*`/g, '').matchAll(/\]\(([^)\s]+)\)/g)) {
    links.push({ target: match[1] ?? '', line: lineNumber });
  }
}

/** As GitHub makes anchors: lower case, punctuation dropped, blanks to hyphens. */
function slugOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-');
}

const NOT_OURS = new Set(['node_modules', 'build', 'dist', '.git']);

/** Every markdown file of the repository. */
export function markdownFiles(folder = ''): string[] {
  return readdirSync(path.join(ROOT, folder), { withFileTypes: true })
    .filter(({ name }) => !NOT_OURS.has(name))
    .flatMap((entry) => {
      const file = path.join(folder, entry.name);
      if (entry.isDirectory()) return markdownFiles(file);
      return entry.name.endsWith('.md') ? [file] : [];
    });
}

/** What is wrong with a link of that file; `undefined` if nothing is, or if it leads out of the repository. */
export function linkProblem(file: string, target: string): string | undefined {
  if (/^[a-z]+:/.test(target)) return undefined;
  const [place = '', anchor] = target.split('#');
  const destination =
    place === '' ? file : path.join(path.dirname(file), decodeURIComponent(place));
  if (!existsSync(path.join(ROOT, destination))) return 'leads to nothing';
  if (anchor === undefined || !destination.endsWith('.md')) return undefined;
  const { headings } = readMarkdown(destination);
  return headings.some((heading) => heading.anchor === decodeURIComponent(anchor))
    ? undefined
    : 'leads to no heading';
}
