import { parseSync, printSync } from '@swc/core';
import { describe, expect, it } from '@jest/globals';
import { readMarkdown, type CodeBlock } from './markdown.js';
import { compileSnippets } from './snippet-project.js';

describe.each(['README.md', 'README.ko.md'])('the code in %s', (file) => {
  it('compiles strictly against the library', async () => {
    const { count, errors } = await compileSnippets(file, file);
    expect(errors).toEqual([]);
    expect(count).toBeGreaterThan(10);
  });
});

describe('the two READMEs', () => {
  const english = readMarkdown('README.md');
  const korean = readMarkdown('README.ko.md');

  it('show the same code, whatever the language of its comments', () => {
    const inOrder = ({ blocks }: typeof english) =>
      blocks.filter(({ lang }) => lang !== 'text').map(withoutComments);
    expect(inOrder(korean)).toEqual(inOrder(english));
  });

  it('have the same sections', () => {
    const levels = ({ headings }: typeof english) => headings.map(({ level }) => level);
    expect(levels(korean)).toEqual(levels(english));
  });

  it('have the same tables, row for row', () => {
    const shape = ({ tables }: typeof english) =>
      tables.map((table) => table.map((row) => row.length));
    expect(shape(korean)).toEqual(shape(english));
  });
});

function withoutComments({ lang, code }: CodeBlock): string {
  if (lang === 'bash') return code.replaceAll(/(^|\s)#.*$/gm, '');
  if (lang === 'sql') return code.replaceAll(/\s*--.*$/gm, '');
  return printSync(parseSync(code, { syntax: 'typescript', decorators: true, target: 'es2022' }))
    .code;
}
