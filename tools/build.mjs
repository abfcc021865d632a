// @ts-check
/**
 * node tools/build.mjs [--examples]
 *
 * Builds dist from src; with --examples also the examples and the tests' apps into build/. Every
 * `npm test` and `npm run demo` begins with it, so it does nothing when nothing changed.
 */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';

const root = path.dirname(import.meta.dirname);
process.chdir(root);

const shared = ['package.json', 'package-lock.json', 'tsconfig.json'];

buildStep({
  name: 'dist',
  project: 'tsconfig.json',
  inputs: [...shared, 'src', 'migrations'],
  outputs: ['dist'],
});
// What the compiler does not touch: what the dashboard serves to browsers.
cpSync('src/dashboard/assets', 'dist/dashboard/assets', { recursive: true });
if (existsSync('dist/cli.js')) chmodSync('dist/cli.js', 0o755);

if (process.argv.includes('--examples')) {
  buildFolder('examples', 'tsconfig.examples.json');
  buildFolder('test/apps', 'tsconfig.apps.json');
}

/**
 * Builds a folder of programs that use the library.
 * @param {string} folder
 * @param {string} project
 */
function buildFolder(folder, project) {
  if (!filesBelow(folder).some((file) => file.endsWith('.ts'))) return;
  buildStep({
    name: folder.replace('/', '-'),
    project,
    // src, because they are compiled against the declarations built from it.
    inputs: [...shared, project, 'tsconfig.examples.json', 'src', 'tools', 'test/support', folder],
    outputs: [`build/${folder}`],
  });
}

/** @param {{ name: string, project: string, inputs: string[], outputs: string[] }} step */
function buildStep({ name, project, inputs, outputs }) {
  // Beside the outputs and not inside: dist is packed as it lies.
  const stamp = `build/.${name}.stamp`;
  const fingerprint = fingerprintOf(inputs);
  const built = [stamp, ...outputs].every((place) => existsSync(place));
  if (built && readFileSync(stamp, 'utf8') === fingerprint) return;

  const startedAt = performance.now();
  for (const folder of [stamp, ...outputs]) rmSync(folder, { recursive: true, force: true });
  const tsc = path.join('node_modules', 'typescript', 'bin', 'tsc');
  const { status } = spawnSync(process.execPath, [tsc, '-p', project], { stdio: 'inherit' });
  if (status !== 0) {
    console.error(`build: ${name} failed (tsc -p ${project})`);
    process.exit(1);
  }
  mkdirSync('build', { recursive: true });
  writeFileSync(stamp, fingerprint);
  console.log(`build: ${name}, ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
}

/**
 * Names, sizes and dates: notices a deleted file and one that was put back with an older date,
 * which "is anything newer than the stamp?" does not.
 * @param {string[]} inputs
 */
function fingerprintOf(inputs) {
  return inputs
    .flatMap(filesBelow)
    .map((file) => {
      const { size, mtimeMs } = statSync(file);
      return `${file} ${size} ${mtimeMs}\n`;
    })
    .join('');
}

/**
 * @param {string} place a file or a folder; one that does not exist has no files
 * @returns {string[]}
 */
function filesBelow(place) {
  if (!existsSync(place)) return [];
  if (statSync(place).isFile()) return [place];
  return readdirSync(place, { withFileTypes: true })
    .filter((entry) => entry.name !== 'node_modules')
    .flatMap((entry) => filesBelow(path.join(place, entry.name)))
    .toSorted();
}
