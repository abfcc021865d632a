import { describe, expect, it } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { resolveGate } from '../../src/bootstrap/gate.js';
import { readMarkdown } from '../docs/markdown.js';

const FOLDER = import.meta.dirname;
const sources = readdirSync(FOLDER)
  .filter((file) => file.endsWith('.test.ts') && !file.startsWith('docs.'))
  .map((file) => readFileSync(path.join(FOLDER, file), 'utf8'))
  .join('\n');

describe.each(['docs/bootstrap-gate.md', 'docs/bootstrap-gate.ko.md'])('%s', (file) => {
  const { tables } = readMarkdown(file);

  it('names a test for each line of what can go wrong, and there is such a test', () => {
    const [, ...lines] = tables.find(([head]) => /^(test|테스트)$/.test(head?.[2] ?? '')) ?? [];
    expect(lines.length).toBeGreaterThan(15);
    const named = lines.map(([, , test = '']) => test.replaceAll('`', ''));
    expect(named.filter((name) => !sources.includes(`'${name}'`))).toEqual([]);
    expect(new Set(named).size).toBe(named.length);
  });

  it('gives the defaults that the code has', () => {
    const gate = resolveGate({
      key: 'k',
      eventType: 'a',
      load: () => [],
      payload: () => ({}),
      whenEmpty: 'leave',
    });
    const [, ...rows] = tables.find(([head]) => /^(field|필드)$/.test(head?.[0] ?? '')) ?? [];
    const written = rows.flatMap(([name = '', value = '']) =>
      /^`[\d_]+`$/.test(value)
        ? [[name.replaceAll('`', ''), Number(value.replaceAll(/[`_]/g, ''))]]
        : [],
    );
    expect(written).toHaveLength(5);
    expect(gate).toMatchObject(Object.fromEntries(written));
  });
});
