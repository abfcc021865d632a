import { readFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { BENCH, ROOT } from './places.ts';

/** One line that says where the figures come from. */
export function conditions(postgres: string): string {
  const cpus = os.cpus();
  const model = (cpus[0]?.model ?? 'unknown processor').replaceAll(/\s+/g, ' ').trim();
  const memory = Math.round(os.totalmem() / 2 ** 30);
  const { version } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as {
    version: string;
  };
  const date = new Date().toISOString().slice(0, 10);
  return (
    `${date} · nestjs-outbox-relay ${version} · PostgreSQL ${postgres} with default settings, on the same machine ` +
    `over TCP · Node ${process.version.slice(1)}, \`pg\` ${versionOf('pg')} · ${cpus.length} cores of ` +
    `${model}, ${memory} GiB, ${os.type()} ${os.release().split('-')[0]}`
  );
}

function versionOf(name: string): string {
  const file = path.join(BENCH, 'node_modules', name, 'package.json');
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
