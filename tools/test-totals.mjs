// @ts-check
/** node tools/test-totals.mjs: prints the totals of the last test run again. */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** Written by the reporter at the end of a run, and gone while one is under way. */
export const TOTALS_FILE = path.join(import.meta.dirname, '..', 'build', 'test-totals.json');

/** `N passed, N failed`, alone on its line; nothing when the tests did not get to their end. */
export function printTotals() {
  if (!existsSync(TOTALS_FILE)) return;
  const { passed, failed, skipped } = JSON.parse(readFileSync(TOTALS_FILE, 'utf8'));
  console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) printTotals();
