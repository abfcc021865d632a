/**
 * npm run bench [-- --only drain,latency] [--n 2000] [--rounds 5] [--smoke]
 *
 * Measures this library, what PostgreSQL allows, and what users would pick instead, on one server of its own; writes
 * docs/benchmarks.md and build/bench/results.json. See docs/benchmarks.md for what is measured and how.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Lab } from './harness/lab.ts';
import { BENCH, PACKAGE_COPY, RESULTS, ROOT } from './harness/places.ts';
import { say } from './harness/progress.ts';
import { toText, type Report } from './harness/report.ts';
import { readSettings, type ScenarioName, type Settings } from './harness/settings.ts';

type Scenario = (lab: Lab) => Promise<Report>;

const settings = readSettingsOrExit();
prepare();

// Only now: they import what has just been installed and built.
const { Lab: LabClass } = await import('./harness/lab.ts');
const { conditions } = await import('./harness/machine.ts');
const { publish } = await import('./harness/documentation.ts');
const SCENARIOS: Record<ScenarioName, () => Promise<Scenario>> = {
  drain: async () => (await import('./scenarios/drain.ts')).drain,
  tuning: async () => (await import('./scenarios/tuning.ts')).tuning,
  latency: async () => (await import('./scenarios/latency.ts')).latency,
  enqueue: async () => (await import('./scenarios/enqueue.ts')).enqueue,
  growth: async () => (await import('./scenarios/growth.ts')).growth,
  memory: async () => (await import('./scenarios/memory.ts')).memory,
  processes: async () => (await import('./scenarios/processes.ts')).processes,
  idle: async () => (await import('./scenarios/idle.ts')).idle,
  'slow-listener': async () => (await import('./scenarios/slow-listener.ts')).slowListener,
};

const failed: string[] = [];
let file = '';
const shared = settings.size === 'smoke' ? await LabClass.open(settings) : undefined;
for (const name of settings.only) {
  say(`=== ${name}`);
  try {
    const measure = await SCENARIOS[name]();
    // A server of its own for each: none begins on what another has left behind.
    const lab = shared ?? (await LabClass.open(settings));
    try {
      const report = await measure(lab);
      for (const table of report.tables) console.log(`\n${toText(table)}\n`);
      assertComplete(name, report);
      if (settings.size === 'smoke') continue;
      const where = conditions(await lab.version());
      keepRaw(name, report, where);
      file = await publish(name, report, where, { published: settings.size === 'full' });
    } finally {
      if (lab !== shared) await lab.close();
    }
  } catch (error) {
    // The others are worth an hour of work all the same.
    failed.push(name);
    console.error(error);
  }
}
await shared?.close();
if (file !== '') say(`written: ${path.relative(ROOT, file)}`);
say(failed.length === 0 ? 'done' : `FAILED: ${failed.join(', ')}`);
process.exit(failed.length === 0 ? 0 : 1);

function readSettingsOrExit(): Settings {
  try {
    return readSettings(process.argv.slice(2));
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exit(process.argv.includes('--help') ? 0 : 2);
  }
}

/** Installs the contenders unless they are there, builds the library, and takes a copy of it. */
function prepare(): void {
  for (const folder of [BENCH, path.join(BENCH, 'nest-11')]) {
    if (isInstalled(folder)) continue;
    say(`npm ci in ${path.relative(ROOT, folder)}`);
    run('npm', ['ci', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'], folder);
  }
  run(process.execPath, ['tools/build.mjs'], ROOT);
  rmSync(PACKAGE_COPY, { recursive: true, force: true });
  mkdirSync(PACKAGE_COPY, { recursive: true });
  for (const part of ['dist', 'migrations', 'package.json']) {
    cpSync(path.join(ROOT, part), path.join(PACKAGE_COPY, part), { recursive: true });
  }
}

/** What is asked for in package.json lies there in exactly that version. */
function isInstalled(folder: string): boolean {
  const { dependencies } = readJson(path.join(folder, 'package.json'));
  return Object.entries(dependencies ?? {}).every(([name, wanted]) => {
    const found = path.join(folder, 'node_modules', name, 'package.json');
    return existsSync(found) && readJson(found).version === wanted;
  });
}

function readJson(place: string): { version?: string; dependencies?: Record<string, string> } {
  return JSON.parse(readFileSync(place, 'utf8')) as ReturnType<typeof readJson>;
}

function run(program: string, args: string[], cwd: string): void {
  const { status, error } = spawnSync(program, args, {
    cwd,
    stdio: 'inherit',
    shell: process.platform === 'win32' && program === 'npm',
  });
  if (status === 0) return;
  console.error(`bench: ${program} ${args.join(' ')} failed${error ? `: ${error.message}` : ''}`);
  process.exit(1);
}

/** A figure that is not one means that something was not measured. */
function assertComplete(name: string, report: Report): void {
  if (settings.size !== 'smoke') return;
  if (report.tables.every(({ rows }) => rows.length > 0)) return;
  throw new Error(`${name}: an empty table`);
}

function keepRaw(name: string, { figures, raw }: Report, where: string): void {
  const target = path.join(RESULTS, 'results.json');
  const before = existsSync(target)
    ? (JSON.parse(readFileSync(target, 'utf8')) as Record<string, unknown>)
    : {};
  const now = { ...before, [name]: { where, settings, figures, raw } };
  writeFileSync(target, `${JSON.stringify(now, null, 1)}\n`);
}
