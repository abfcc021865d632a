import { describe, expect, it } from '@jest/globals';
import { readMarkdown } from './markdown.js';
import { compileSnippets } from './snippet-project.js';

const english = readMarkdown('docs/operations.md');
const korean = readMarkdown('docs/operations.ko.md');

describe.each(['docs/operations.md', 'docs/operations.ko.md'])('the code in %s', (file) => {
  it('compiles strictly against the library', async () => {
    const { count, errors } = await compileSnippets(file, file.replaceAll('/', '-'));
    expect(errors).toEqual([]);
    expect(count).toBeGreaterThan(1);
  });
});

describe('the two guides to operations', () => {
  it('have the same sections, code and tables', () => {
    const shape = ({ headings, blocks, tables }: typeof english) => ({
      levels: headings.map(({ level }) => level),
      code: blocks.map(({ code }) => code),
      tables: tables.map((table) => table.map((row) => row.length)),
    });
    expect(shape(korean)).toEqual(shape(english));
  });
});
