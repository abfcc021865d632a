import { describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { ATTRIBUTE, METRIC } from '../../src/telemetry/semantic-conventions.js';
import { readMarkdown, ROOT } from './markdown.js';
import { compileSnippets } from './snippet-project.js';

const english = readMarkdown('docs/telemetry.md');
const korean = readMarkdown('docs/telemetry.ko.md');

/** What stands in backticks in the first column. */
function namesOf({ tables }: typeof english, table: number): string[] {
  return (tables[table] ?? [])
    .slice(1)
    .map(([name = '']) => name.replaceAll('`', ''))
    .toSorted();
}

describe('docs/telemetry', () => {
  it('says the same in Korean: the same code, sections and tables', () => {
    const code = ({ blocks }: typeof english) =>
      blocks
        .filter(({ lang }) => lang !== 'text')
        .map((block) => block.code.replaceAll(/ \/\/ .*$/gm, ''));
    expect(code(korean)).toEqual(code(english));
    expect(korean.headings.map(({ level }) => level)).toEqual(
      english.headings.map(({ level }) => level),
    );
    const shape = ({ tables }: typeof english) =>
      tables.map((table) => table.map((row) => row.length));
    expect(shape(korean)).toEqual(shape(english));
  });

  it('shows code that compiles strictly', async () => {
    const { count, errors } = await compileSnippets('docs/telemetry.md', 'telemetry');
    expect(errors).toEqual([]);
    expect(count).toBe(2);
  });

  it.each([english, korean])('lists every metric there is, and no other', (document) => {
    expect(namesOf(document, 2)).toEqual(Object.values(METRIC).toSorted());
  });

  it.each([english, korean])('names every attribute', (document) => {
    const { outcome, table, gateFailure, ...ofSpans } = ATTRIBUTE;
    expect(namesOf(document, 1)).toEqual(Object.values(ofSpans).toSorted());
    for (const name of [outcome, table, gateFailure])
      expect(readFileSync(path.join(ROOT, document.file), 'utf8')).toContain(`\`${name}\``);
  });
});
