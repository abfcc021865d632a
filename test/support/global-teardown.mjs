// @ts-check
import { printTotals } from '../../tools/test-totals.mjs';

export default async function globalTeardown() {
  /** @type {{ testClusters?: import('../../tools/postgres-cluster.ts').Cluster[] }} */
  const { testClusters = [] } = /** @type {object} */ (globalThis);
  await Promise.all(testClusters.map((cluster) => cluster.remove()));
  printTotals(); // the last line of all
}
