import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';

describe('the check of the rooms', () => {
  let src: string;

  beforeEach(() => {
    src = mkdtempSync(path.join(tmpdir(), 'rooms-'));
  });
  afterEach(() => rmSync(src, { recursive: true }));

  it('accepts imports of the own room, of rooms above, of packages, and anything at the root', () => {
    write('event/payload.ts', `export type Payload = object;`);
    write('event/outbox-event.ts', `import type { Payload } from './payload.js';`);
    write('relay/relay.ts', `import '../event/outbox-event.js'; import 'node:fs'; import 'pg';`);
    write('relay/relay.worker.ts', `import { Logger } from '@nestjs/common';`);
    write('index.ts', `export * from './relay/relay.js'; // import '@nestjs/core'`);
    write('cli.ts', `#!/usr/bin/env node\nimport './index.js';`);
    expect(check()).toEqual({ status: 0, violations: [] });
  });

  it.each([
    [
      'a room below',
      'event/a.ts',
      `\n\nimport { b } from '../store/b.js';`,
      "3 imports '../store/b.js', but 'event' may import only the rooms above it: none",
    ],
    [
      'a type from below',
      'store/a.ts',
      `import type { B } from '../relay/b.js';`,
      "1 imports '../relay/b.js', but 'store' may import only the rooms above it: event",
    ],
    [
      'an inline type from below',
      'event/a.ts',
      `\nexport let b: import('../relay/b.js').B;`,
      "2 imports '../relay/b.js'",
    ],
    [
      'a re-export from below',
      'event/a.ts',
      `export { b } from '../store/deep/b.js';`,
      "1 imports '../store/deep/b.js'",
    ],
    [
      'a dynamic import',
      'event/a.ts',
      `/* ä */\nawait import('../store/b.js');`,
      "2 imports '../store/b.js'",
    ],
    [
      'the root',
      'inbox/a.ts',
      `import '../outbox-options.js';`,
      'only files at the root of src import files at the root',
    ],
    [
      'the package by its name',
      'inbox/a.ts',
      `import 'nestjs-outbox-relay';`,
      'not by the name of the package',
    ],
    [
      'something outside src',
      'inbox/a.ts',
      `import '../../test/a.js';`,
      'src imports nothing from outside src',
    ],
    [
      'an unknown room',
      'utils/a.ts',
      `export {};`,
      "1 lies in 'utils/', but the rooms are event, store",
    ],
    [
      'Nest in a dashed file',
      'relay/a-b.ts',
      `import '@nestjs/common';`,
      "1 imports '@nestjs/common', but only a file with a dotted name",
    ],
    [
      'no Nest in a dotted file',
      'relay/a.worker.ts',
      `export {};`,
      '1 has a dotted name, but a dotted file imports @nestjs/*',
    ],
  ])('reports %s', (_what, file, text, expected) => {
    write(file, text);
    const { status, violations } = check();
    expect(status).toBe(1);
    expect(violations).toEqual([expect.stringContaining(expected)]);
    expect(violations[0]).toContain(`${path.basename(src)}/${file}:`);
  });

  it('does not pass when there is nothing to check', () => {
    expect(check().status).toBe(1);
  });

  function write(file: string, text: string): void {
    mkdirSync(path.dirname(path.join(src, file)), { recursive: true });
    writeFileSync(path.join(src, file), text);
  }

  function check(): { status: number | null; violations: string[] } {
    const { status, stderr } = spawnSync(process.execPath, ['tools/rooms.mjs', src], {
      encoding: 'utf8',
    });
    return { status, violations: stderr.split('\n').filter((line) => line !== '') };
  }
});
