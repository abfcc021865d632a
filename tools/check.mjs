// @ts-check
/**
 * node tools/check.mjs [--skip tests]…
 *
 * Everything that has to hold before a change goes in, the cheap steps first; stops at the first
 * failure. CI runs the same.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';

process.chdir(path.dirname(import.meta.dirname));

const bin = path.join('node_modules', '.bin');
const node = process.execPath;

/** @type {{ name: string, command: string[], onlyIf?: string }[]} */
const STEPS = [
  { name: 'format', command: [path.join(bin, 'prettier'), '--check', '--log-level', 'warn', '.'] },
  { name: 'lint', command: ['npm', 'run', '--silent', 'lint'] },
  { name: 'types', command: ['npm', 'run', '--silent', 'types'] },
  { name: 'rooms', command: [node, 'tools/rooms.mjs'] },
  { name: 'build', command: [node, 'tools/build.mjs', '--examples'] },
  { name: 'tests', command: ['npm', 'test', '--silent'] },
  { name: 'consumers', command: [node, 'tools/consumers.mjs'], onlyIf: 'tools/consumers.mjs' },
  { name: 'demo', command: ['npm', 'run', '--silent', 'demo'], onlyIf: 'examples/quote-request' },
  {
    name: 'example',
    command: ['npm', 'run', '--silent', 'example:bootstrap'],
    onlyIf: 'examples/bootstrap-sync',
  },
  {
    name: 'telemetry',
    command: ['npm', 'run', '--silent', 'example:telemetry'],
    onlyIf: 'examples/telemetry',
  },
  // How fast it is, nobody can tell in CI; that it runs, everybody should.
  { name: 'bench', command: ['npm', 'run', '--silent', 'bench:smoke'] },
];

const { values } = parseArgs({
  options: { skip: { type: 'string', multiple: true, default: [] } },
});
const unknown = values.skip.find((name) => !STEPS.some((step) => step.name === name));
if (unknown !== undefined) {
  console.error(
    `check: no step "${unknown}"; there are ${STEPS.map(({ name }) => name).join(', ')}`,
  );
  process.exit(2);
}

for (const { name, command, onlyIf } of STEPS) {
  if (values.skip.includes(name)) continue;
  if (onlyIf && !existsSync(onlyIf)) continue;
  console.log(`\n=== ${name}`);
  const startedAt = performance.now();
  const [program = '', ...args] = command;
  const { status, error } = spawnSync(program, args, { stdio: 'inherit' });
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  if (status !== 0) {
    console.error(
      `\ncheck: ${name} failed after ${seconds} s${error ? ` (${error.message})` : ''}`,
    );
    process.exit(1);
  }
  console.log(`=== ${name}: ok, ${seconds} s`);
}

// The numbers scrolled away above the steps that followed.
if (!values.skip.includes('tests')) {
  console.log();
  spawnSync(node, ['tools/test-totals.mjs'], { stdio: 'inherit' });
}
