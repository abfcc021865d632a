// @ts-check
/**
 * node tools/rooms.mjs [folder = src]
 *
 * Keeps the order of the rooms (the folders of src): a room imports only itself and the rooms above
 * it in the list, and nothing but the root's own files imports the root. A dotted file name
 * (relay.worker.ts) says "imports @nestjs/*", and any other must not. Types count too: a type that
 * comes from below is a dependency on what lies below.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { parseSync } from '@swc/core';

/** From the one that knows nothing to the one that may know all the others. */
const ROOMS = [
  'event',
  'store',
  'schema',
  'transaction',
  'telemetry',
  'delivery',
  'relay',
  'bootstrap',
  'dead-letter',
  'inbox',
  'monitor',
  'doctor',
  'dashboard',
  'cli',
];
const PACKAGE = 'nestjs-outbox-relay';

const src = path.resolve(process.argv[2] ?? path.join(import.meta.dirname, '..', 'src'));
const files = sourceFilesBelow(src);
const violations = files.flatMap(violationsOf);

for (const violation of violations) console.error(violation);
if (files.length === 0) console.error(`rooms: no TypeScript file below ${src}`);
if (violations.length > 0 || files.length === 0) {
  process.exitCode = 1;
} else {
  console.log(`rooms: ${files.length} files, all in order`);
}

/**
 * @param {string} file
 * @returns {string[]} one line per violation
 */
function violationsOf(file) {
  const room = roomOf(file);
  const imports = importsOf(file);
  const found = imports.flatMap(({ line, specifier }) => {
    const rule = brokenRule(file, room, specifier);
    return rule ? [message(file, line, `imports '${specifier}'`, rule)] : [];
  });

  if (room !== '' && !ROOMS.includes(room)) {
    found.unshift(message(file, 1, `lies in '${room}/'`, `the rooms are ${ROOMS.join(', ')}`));
  }
  const nest = imports.find(({ specifier }) => specifier.startsWith('@nestjs/'));
  const dotted = path
    .basename(file)
    .replace(/\.tsx?$/, '')
    .includes('.');
  if (dotted && !nest) {
    found.push(
      message(
        file,
        1,
        'has a dotted name',
        'a dotted file imports @nestjs/*, a dashed one does not',
      ),
    );
  }
  if (!dotted && nest) {
    found.push(
      message(
        file,
        nest.line,
        `imports '${nest.specifier}'`,
        'only a file with a dotted name (relay.worker.ts) imports @nestjs/*',
      ),
    );
  }
  return found;
}

/**
 * @param {string} file
 * @param {string} room
 * @param {string} specifier
 * @returns {string | undefined}
 */
function brokenRule(file, room, specifier) {
  if (specifier === PACKAGE || specifier.startsWith(`${PACKAGE}/`)) {
    return 'src imports its own files by their paths, not by the name of the package';
  }
  if (!specifier.startsWith('.')) return undefined;

  const target = path.resolve(path.dirname(file), specifier);
  if (path.relative(src, target).startsWith('..')) return 'src imports nothing from outside src';
  const targetRoom = roomOf(target);
  if (room === '' || room === targetRoom) return undefined;
  if (targetRoom === '') return 'only files at the root of src import files at the root of src';
  if (ROOMS.indexOf(targetRoom) < ROOMS.indexOf(room)) return undefined;
  return `'${room}' may import only the rooms above it: ${ROOMS.slice(0, ROOMS.indexOf(room)).join(', ') || 'none'}`;
}

/**
 * Every module that the file names: import and export declarations, `import()`, `import('…').Type`.
 * @param {string} file
 * @returns {{ line: number, specifier: string }[]}
 */
function importsOf(file) {
  // The parser's positions are bytes, counted from an unknown start. A statement in front of
  // everything, on the same line, tells where that is.
  const marker = '0;';
  const code = marker + readFileSync(file, 'utf8').replace(/^#!/, '//');
  const bytes = Buffer.from(code);
  const { body } = parseSync(code, {
    syntax: 'typescript',
    tsx: file.endsWith('.tsx'),
    decorators: true,
    target: 'es2022',
  });
  const start = body[0]?.span.start ?? 0;
  /** @type {{ line: number, specifier: string }[]} */
  const found = [];

  walk(body);
  return found;

  /** @param {any} node */
  function walk(node) {
    if (node === null || typeof node !== 'object') return;
    const literal = moduleNamedBy(node);
    if (literal) {
      const before = bytes.subarray(0, literal.span.start - start).toString();
      found.push({ line: before.split('\n').length, specifier: literal.value });
    }
    for (const child of Object.values(node)) walk(child);
  }
}

/**
 * @param {any} node
 * @returns {{ value: string, span: { start: number } } | undefined}
 */
function moduleNamedBy(node) {
  switch (node.type) {
    case 'ImportDeclaration':
    case 'ExportNamedDeclaration':
    case 'ExportAllDeclaration':
      return node.source ?? undefined;
    case 'TsImportType':
      return node.argument;
    case 'TsExternalModuleReference':
      return node.expression;
    case 'CallExpression': {
      const isImport = node.callee.type === 'Import' || node.callee.value === 'require';
      const argument = node.arguments[0]?.expression;
      return isImport && argument?.type === 'StringLiteral' ? argument : undefined;
    }
    default:
      return undefined;
  }
}

/** @param {string} file @returns {string} the folder of src it lies in, '' for the root */
function roomOf(file) {
  const [first = '', ...rest] = path.relative(src, file).split(path.sep);
  return rest.length > 0 ? first : '';
}

/** @param {string} file @param {number} line @param {string} what @param {string} rule */
function message(file, line, what, rule) {
  return `${path.relative(process.cwd(), file)}:${line} ${what}, but ${rule}.`;
}

/** @param {string} folder @returns {string[]} */
function sourceFilesBelow(folder) {
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return [];
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .toSorted()
    .map((name) => path.join(folder, name));
}
