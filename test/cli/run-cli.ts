import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import { run } from '../../src/cli/run.js';

const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as {
  bin: Record<string, string>;
};
export const CLI = path.resolve(manifest.bin['nestjs-outbox-relay']!);

export interface Ran {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs the built command as a user does, with DATABASE_URL as given and nothing else that leads to a database. */
export function cli(
  args: string[],
  databaseUrl?: string,
  more: Record<string, string> = {},
): Promise<Ran> {
  const { PATH, HOME } = process.env;
  const env = {
    PATH,
    HOME,
    ...(databaseUrl !== undefined && { DATABASE_URL: databaseUrl }),
    ...more,
  };
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      [CLI, ...args],
      { env, timeout: 25_000, maxBuffer: 64 * 1_048_576 },
      (error, stdout, stderr) => {
        const code = error === null ? 0 : error.code;
        if (typeof code === 'number') resolve({ code, stdout, stderr });
        else reject(error ?? new Error('no exit code'));
      },
    );
  });
}

/** Runs it in this process, as if on a terminal. */
export async function onTerminal(
  args: string[],
  databaseUrl: string,
  {
    answer,
    columns = 120,
    env = {},
  }: { answer?: string; columns?: number; env?: Record<string, string> } = {},
): Promise<Ran> {
  const terminal = () => Object.assign(new PassThrough(), { isTTY: true, columns });
  const stdin = terminal();
  const stdout = terminal();
  const stderr = terminal();
  const read = { stdout: '', stderr: '' };
  stdout.on('data', (chunk: Buffer) => (read.stdout += chunk.toString()));
  stderr.on('data', (chunk: Buffer) => {
    read.stderr += chunk.toString();
    if (answer !== undefined && chunk.toString().includes('[y/N]')) stdin.write(`${answer}\n`);
  });
  const streams = { stdin, stdout, stderr, env: { DATABASE_URL: databaseUrl, ...env } };
  const code = await run(args, streams as never);
  return { code, ...read };
}
