import { readFileSync } from 'node:fs';

/** Of this package; `unknown` where it was bundled into something else. */
export function packageVersion(): string {
  try {
    const file = new URL('../../package.json', import.meta.url);
    return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
  } catch {
    return 'unknown';
  }
}
