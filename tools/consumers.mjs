// @ts-check
/**
 * node tools/consumers.mjs
 *
 * Packs the library and uses it as its users do: checks what is in the tarball and how it resolves, installs it into
 * the applications of test/consumers (Nest 12 as ES module, Nest 11 as CommonJS), compiles them, and runs them
 * against a real PostgreSQL. One line per check; exit code 1 with the reason if one fails.
 *
 * Works from npm's cache as far as that goes, and in a temporary folder outside the checkout, so that nothing can be
 * found in our own node_modules by mistake.
 */
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

const root = path.dirname(import.meta.dirname);
const bin = path.join(root, 'node_modules', '.bin');

onOurNode();
const { startCluster } = await import('./postgres-cluster.ts');

/** @typedef {{ cwd?: string, env?: Record<string, string>, timeoutMs?: number }} RunOptions */

const CONSUMERS = [
  {
    name: 'nest12-esm',
    resolutions: [
      ['nodenext', 'nodenext'],
      ['preserve', 'bundler'],
    ],
  },
  {
    name: 'nest11-cjs',
    resolutions: [
      ['nodenext', 'nodenext'],
      ['commonjs', 'node10'],
    ],
  },
];

const DOCUMENTS = new Set(['package.json', 'LICENSE', 'README.md', 'README.ko.md', 'CHANGELOG.md']);

const startedAt = performance.now();
const folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'outbox-consumers-')));
/** @type {Set<import('node:child_process').ChildProcess>} */
const children = new Set();
process.on('exit', () => {
  for (const child of children) killGroup(child);
  rmSync(folder, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

/** @type {import('./postgres-cluster.ts').Cluster | undefined} */
let cluster;
try {
  const [tarball, started] = await Promise.all([pack(), startCluster({ major: 18 })]);
  cluster = started;
  await allOf([
    checkResolution(tarball),
    ...CONSUMERS.map((consumer) => checkConsumer(consumer, tarball, started)),
  ]);
  say(`all in order, ${((performance.now() - startedAt) / 1_000).toFixed(1)} s`);
} catch (error) {
  console.error(`consumers: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  await cluster?.remove();
}

/**
 * Unlike Promise.all: nothing is left running when it answers, and every reason is told.
 * @param {Promise<void>[]} checks
 */
async function allOf(checks) {
  const results = await Promise.allSettled(checks);
  const reasons = results.flatMap((result) =>
    result.status === 'rejected' ? [String(result.reason?.message ?? result.reason)] : [],
  );
  if (reasons.length > 0) throw new Error(reasons.join('\n\n'));
}

/** Node strips the types of postgres-cluster.ts, and pg-boss wants a new one: ours is, the machine's may not be. */
function onOurNode() {
  const ours = path.join(bin, process.platform === 'win32' ? 'node.cmd' : 'node');
  if (process.env['OUTBOX_CONSUMERS_NODE'] === 'ours' || !existsSync(ours)) return;
  if (realpathSync(process.execPath) === realpathSync(ours)) return;
  const { status } = spawnSync(ours, [import.meta.filename], {
    stdio: 'inherit',
    env: { ...process.env, OUTBOX_CONSUMERS_NODE: 'ours' },
  });
  process.exit(status ?? 1);
}

/** @returns {Promise<string>} the tarball's path */
async function pack() {
  await run(process.execPath, ['tools/build.mjs'], { cwd: root });
  const answer = await run(
    'npm',
    ['pack', '--json', '--ignore-scripts', '--pack-destination', folder],
    {
      cwd: root,
    },
  );
  /** @type {[{ filename: string, size: number, files: { path: string, mode: number }[] }]} */
  const [packed] = JSON.parse(answer);
  const modes = new Map(packed.files.map((file) => [file.path, file.mode]));

  const strangers = [...modes.keys()].filter((file) => !belongs(file));
  if (strangers.length > 0) throw new Error(`the tarball contains ${strangers.join(', ')}`);
  const missing = [...required()].filter((file) => !modes.has(file));
  if (missing.length > 0) throw new Error(`the tarball lacks ${missing.join(', ')}`);
  if (((modes.get('dist/cli.js') ?? 0) & 0o111) === 0)
    throw new Error('dist/cli.js is not executable');

  say(
    `tarball: ${modes.size} files, ${Math.round(packed.size / 1_024)} kB, nothing missing, nothing else`,
  );
  return path.join(folder, packed.filename);
}

/** @param {string} file */
function belongs(file) {
  const [, source] = /^dist\/(.*?)\.(?:d\.ts|js)(?:\.map)?$/.exec(file) ?? [];
  // A file in dist without its source is a leftover of an earlier build.
  const [, asset] = /^dist\/(dashboard\/assets\/[\w-]+\.(?:css|js))$/.exec(file) ?? [];
  if (asset !== undefined) return existsSync(path.join(root, 'src', asset));
  if (source !== undefined) {
    return ['.ts', '.tsx'].some((end) => existsSync(path.join(root, 'src', `${source}${end}`)));
  }
  return /^migrations\/\d{3}_\w+\.sql$/.test(file) || DOCUMENTS.has(file);
}

function required() {
  const files = readdirSync(path.join(root, 'src'), { recursive: true, encoding: 'utf8' }).map(
    (file) => file.replaceAll(path.sep, '/'),
  );
  const sources = files
    .filter((file) => /\.tsx?$/.test(file))
    .flatMap((file) => ['.js', '.d.ts'].map((end) => `dist/${file.replace(/\.tsx?$/, '')}${end}`));
  const assets = files
    .filter((file) => /\/assets\/.*\.(?:css|js)$/.test(file))
    .map((file) => `dist/${file}`);
  const migrations = readdirSync(path.join(root, 'migrations'))
    .filter((file) => file.endsWith('.sql'))
    .map((file) => `migrations/${file}`);
  return new Set([...DOCUMENTS, ...sources, ...assets, ...migrations]);
}

/**
 * Both look at every entry point under every way of resolving it. One finding is left out, since it is meant: a
 * CommonJS caller gets an ES module, which Node can require() from 22.12 on, and older ones are not supported.
 * @param {string} tarball
 */
async function checkResolution(tarball) {
  await run(
    path.join(bin, 'attw'),
    ['--ignore-rules', 'cjs-resolves-to-esm', '--format', 'ascii', '--', tarball],
    {
      cwd: folder,
    },
  );
  say('types: every entry point resolves under node10, node16, nodenext and bundler (attw)');
  await run(path.join(bin, 'publint'), ['run', tarball, '--strict', '--pack', 'false'], {
    cwd: folder,
  });
  say('manifest: nothing to complain about (publint)');
}

/**
 * @param {(typeof CONSUMERS)[number]} consumer
 * @param {string} tarball
 * @param {import('./postgres-cluster.ts').Cluster} database
 */
async function checkConsumer({ name, resolutions }, tarball, database) {
  const project = path.join(folder, name);
  cpSync(path.join(root, 'test', 'consumers', name), project, {
    recursive: true,
    filter: (source) => !source.includes('node_modules'),
  });
  cpSync(path.join(root, 'test', 'consumers', 'shared'), path.join(project, 'src'), {
    recursive: true,
  });
  const npmFlags = ['--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund'];
  const within = { cwd: project };
  /** @param {string} what @param {Promise<string>} work */
  const step = (what, work) =>
    work.catch((/** @type {Error} */ error) => {
      throw new Error(`${name}: ${what} failed: ${error.message}`);
    });

  await step('npm ci', run('npm', ['ci', ...npmFlags], within));
  // Not part of the lock file: every tarball has a checksum of its own.
  await step(
    'installing the tarball',
    run('npm', ['install', '--no-save', ...npmFlags, tarball], within),
  );
  for (const [module = '', moduleResolution = ''] of resolutions) {
    const flags = ['--module', module, '--moduleResolution', moduleResolution];
    const onlyCheck = moduleResolution === 'bundler' ? ['--noEmit'] : [];
    await step(
      `tsc ${flags.join(' ')}`,
      run('npx', ['--no-install', 'tsc', ...flags, ...onlyCheck], within),
    );
  }

  await createDatabase(database, name);
  const env = { DATABASE_URL: database.connectionString(name) };
  const cli = (/** @type {string[]} */ ...args) =>
    step(
      `npx nestjs-outbox-relay ${args.join(' ')}`,
      run('npx', ['--no-install', 'nestjs-outbox-relay', ...args], { ...within, env }),
    );
  expectText(await cli('--help'), 'Usage: nestjs-outbox-relay');
  expectText(
    await cli('migrate', '--print'),
    'CREATE TABLE IF NOT EXISTS "public"."outbox_events"',
  );
  expectText(await cli('migrate'), 'Applied 001_outbox_events.sql');
  expectText(await cli('migrate'), 'Nothing to do');

  const output = await step(
    'the application',
    run(process.execPath, ['dist/main.js'], { ...within, env }),
  );
  const how = resolutions.map(([, resolution]) => resolution).join(' and ');
  say(`${name}: installs, compiles (${how}), migrates, ${output.trim().split('\n').at(-1) ?? ''}`);
}

/** @param {import('./postgres-cluster.ts').Cluster} database @param {string} name */
async function createDatabase(database, name) {
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString: database.connectionString() });
  await client.connect();
  try {
    await client.query(`CREATE DATABASE "${name}"`);
  } finally {
    await client.end();
  }
}

/** @param {string} text @param {string} part */
function expectText(text, part) {
  if (!text.includes(part)) throw new Error(`expected to read "${part}", got:\n${text}`);
}

/**
 * Answers what the program printed on stdout. It may take two minutes at the most, with all it has started.
 * @param {string} program
 * @param {string[]} args
 * @param {RunOptions} options
 * @returns {Promise<string>}
 */
async function run(program, args, { cwd = folder, env = {}, timeoutMs = 120_000 } = {}) {
  const child = spawn(program, args, {
    cwd,
    // What npm tells its scripts (npm_config_…, npm_package_…) would be read by the npm that is started here.
    env: {
      ...withoutNpm(process.env),
      ...env,
      PATH: `${bin}${path.delimiter}${process.env['PATH'] ?? ''}`,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: process.platform !== 'win32',
    shell: process.platform === 'win32',
  });
  /** @type {Buffer[]} */
  const stdout = [];
  /** @type {Buffer[]} */
  const output = [];
  child.stdout.on('data', (chunk) => stdout.push(chunk) && output.push(chunk));
  child.stderr.on('data', (chunk) => output.push(chunk));
  children.add(child);
  const timer = setTimeout(() => killGroup(child), timeoutMs);
  try {
    const [code, signal] = await new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (...exit) => resolve(exit));
    });
    if (code === 0) return Buffer.concat(stdout).toString();
    const how =
      signal === 'SIGKILL'
        ? `did not end within ${timeoutMs / 1_000} s`
        : `ended with ${code ?? signal}`;
    throw new Error(
      `${path.basename(program)} ${args.join(' ')} ${how}\n${Buffer.concat(output).toString()}`,
    );
  } finally {
    clearTimeout(timer);
    children.delete(child);
  }
}

/**
 * With all it has started: npm does not pass a signal on.
 * @param {import('node:child_process').ChildProcess} child
 */
function killGroup(child) {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  if (process.platform === 'win32') child.kill('SIGKILL');
  else process.kill(-child.pid, 'SIGKILL');
}

/** @param {NodeJS.ProcessEnv} env */
function withoutNpm(env) {
  return Object.fromEntries(
    Object.entries(env).filter(
      ([name]) => !/^npm_(?!config_(?:cache|userconfig|registry|offline))/i.test(name),
    ),
  );
}

/** @param {string} line */
function say(line) {
  console.log(`consumers: ${line}`);
}
