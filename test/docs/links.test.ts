import { describe, expect, it } from '@jest/globals';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { linkProblem, markdownFiles, readMarkdown, ROOT } from './markdown.js';

describe('the documentation', () => {
  it('has no relative link that leads nowhere', () => {
    const broken = markdownFiles().flatMap((file) =>
      readMarkdown(file).links.flatMap(({ target, line }) => {
        const problem = linkProblem(file, target);
        return problem === undefined ? [] : [`${file}:${line} ${target} ${problem}`];
      }),
    );
    expect(broken).toEqual([]);
  });

  it('is read at all: a link that leads nowhere is noticed', () => {
    expect(readMarkdown('README.md').links.length).toBeGreaterThan(20);
    expect(linkProblem('README.md', 'docs/nothing.md')).toBe('leads to nothing');
    expect(linkProblem('README.md', '#nothing')).toBe('leads to no heading');
    expect(linkProblem('README.ko.md', 'README.md#options')).toBeUndefined();
  });

  it('lists every decision in the index of decisions', () => {
    const folder = 'docs/decisions';
    const decisions = readdirSync(path.join(ROOT, folder)).filter((file) => /^\d/.test(file));
    const listed = readMarkdown(`${folder}/README.md`).links.map(({ target }) => target);
    expect(listed.filter((target) => /^\d/.test(target)).toSorted()).toEqual(decisions.toSorted());
  });
});
