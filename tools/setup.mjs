// @ts-check
/**
 * Makes `npm test` enough on a fresh checkout: installs what package-lock.json says, unless it is
 * there already, and then answers in milliseconds. The same for the PostgREST of the Supabase tests,
 * which is not a dependency of the package.
 *
 * It runs from the `pre…` scripts and not at the head of the scripts themselves, because the
 * installation brings its own, newer `node` into node_modules/.bin, and a shell remembers where
 * `node` was for the rest of its command line. It has to run on the machine's Node, so: no
 * dependency, no TypeScript.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const MIN_NODE = /** @type {const} */ ([22, 12]);
const root = fileURLToPath(new URL('..', import.meta.url));

// The executable there is for this platform alone; elsewhere there is nothing to install.
const runsPostgrest = process.platform === 'linux' && process.arch === 'x64';
for (const project of [root, ...(runsPostgrest ? [path.join(root, 'test', 'postgrest')] : [])]) {
  const reason = staleReason(project);
  if (reason) install(project, reason);
}
checkNode();

/**
 * Compares contents and not dates: a checkout or a copy gives every file a new date.
 * @param {string} project
 * @returns {string | undefined} why an installation is needed
 */
function staleReason(project) {
  const installedFile = path.join(project, 'node_modules', '.package-lock.json');
  if (!existsSync(installedFile)) return 'node_modules is missing';

  const wanted = packagesIn(path.join(project, 'package-lock.json'));
  const installed = packagesIn(installedFile);
  for (const [place, entry] of Object.entries(wanted)) {
    if (place === '' || !entry) continue; // '' is the project itself
    const { version, integrity, optional, devOptional } = entry;
    const present = installed[place];
    if (present === undefined) {
      // Binaries for other platforms are in the lock file and rightly not on the disk.
      if (optional || devOptional) continue;
      return `${place} is missing`;
    }
    if (present.version !== version || present.integrity !== integrity) return `${place} changed`;
  }
  const extra = Object.keys(installed).find((place) => !(place in wanted));
  return extra && `${extra} is no longer wanted`;
}

/**
 * @param {string} file
 * @returns {Record<string, { version?: string, integrity?: string, optional?: boolean, devOptional?: boolean } | undefined>}
 */
function packagesIn(file) {
  return JSON.parse(readFileSync(file, 'utf8')).packages;
}

/** @param {string} project @param {string} why */
function install(project, why) {
  console.log(`setup: npm ci in ${path.relative(root, project) || '.'}, because ${why}`);
  // Not by a Node that lies in the folder which npm is about to delete.
  const searchPath = (process.env.PATH ?? '')
    .split(path.delimiter)
    .filter((folder) => !folder.endsWith(path.join('node_modules', '.bin')))
    .join(path.delimiter);
  const { status, error } = spawnSync('npm', ['ci', '--include=dev', '--no-audit', '--no-fund'], {
    cwd: project,
    env: { ...process.env, PATH: searchPath },
    stdio: 'inherit',
    shell: process.platform === 'win32', // npm is a batch file there
  });
  if (error || status !== 0) {
    fail(`npm ci failed${error ? `: ${error.message}` : ''}. See its message above.`);
  }
}

function checkNode() {
  const local = path.join(root, 'node_modules', '.bin', 'node');
  const version = existsSync(local) ? versionOf(local) : process.version;
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number);
  if (major > MIN_NODE[0] || (major === MIN_NODE[0] && minor >= MIN_NODE[1])) return;
  fail(
    `Node ${MIN_NODE.join('.')} or newer is needed, this one is ${version}. It comes with the npm ` +
      `package "node", whose install script may have been skipped: run "npm ci --ignore-scripts=false", ` +
      `or put a newer Node on the PATH.`,
  );
}

/** @param {string} node */
function versionOf(node) {
  const { status, stdout } = spawnSync(node, ['--version'], { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : 'one that does not run';
}

/**
 * @param {string} message
 * @returns {never}
 */
function fail(message) {
  console.error(`setup: ${message}`);
  process.exit(1);
}
