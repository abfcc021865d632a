// @ts-check
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { TOTALS_FILE } from '../../tools/test-totals.mjs';

/** Saves the numbers. They are printed by the teardown: jest's own summary comes after reporters. */
export default class TotalsReporter {
  onRunStart() {
    rmSync(TOTALS_FILE, { force: true }); // a run that breaks off must not leave the last one's
  }

  /**
   * @param {unknown} _contexts
   * @param {import('@jest/reporters').AggregatedResult} results
   */
  onRunComplete(_contexts, results) {
    const totals = {
      passed: results.numPassedTests,
      // A file that cannot even be loaded has no failed test, and is a failure.
      failed: results.numFailedTests + results.numRuntimeErrorTestSuites,
      skipped: results.numPendingTests + results.numTodoTests,
    };
    mkdirSync(path.dirname(TOTALS_FILE), { recursive: true });
    writeFileSync(TOTALS_FILE, JSON.stringify(totals));
  }
}
