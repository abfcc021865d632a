// @ts-check
import { startCluster } from '../../tools/postgres-cluster.ts';

/** The oldest and the newest supported PostgreSQL; a test asks for a database in one of them. */
export default async function globalSetup() {
  const clusters = await Promise.all([startCluster({ major: 14 }), startCluster({ major: 18 })]);
  for (const cluster of clusters) {
    process.env[`OUTBOX_TEST_PG${cluster.major}`] = cluster.connectionString(); // for the workers
  }
  Object.assign(globalThis, { testClusters: clusters }); // for the teardown
}
