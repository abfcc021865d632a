import { afterAll, beforeAll, describe, it } from '@jest/globals';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { PgWakeChannel } from '../../src/store/postgres/pg-wake-channel.js';
import { sqlNames } from '../../src/store/postgres/sql-names.js';
import { startCluster, type Cluster } from '../../tools/postgres-cluster.js';
import { until } from '../support/until.js';

describe('a wake channel', () => {
  let cluster: Cluster;

  beforeAll(async () => {
    cluster = await startCluster({ major: 18 });
    const admin = new pg.Client({ connectionString: cluster.connectionString() });
    await admin.connect();
    await admin.query(`CREATE ROLE app LOGIN PASSWORD 'secret'`);
    // Only with the password from here on.
    const hba = path.join(cluster.dataDir, 'pg_hba.conf');
    const rest = readFileSync(hba, 'utf8');
    writeFileSync(hba, 'host all app 127.0.0.1/32 scram-sha-256\n');
    appendFileSync(hba, rest);
    await admin.query('SELECT pg_reload_conf()');
    await admin.end();
  });

  afterAll(() => cluster.remove());

  const newPool = (): pg.Pool => {
    const pool = new pg.Pool({
      host: '127.0.0.1',
      port: cluster.port,
      database: 'postgres',
      user: 'app',
      password: 'secret',
    });
    pool.on('error', () => {});
    return pool;
  };

  it('listens as the pool connects, password included, and is woken by another process', async () => {
    const [listening, announcing] = [newPool(), newPool()];
    const names = sqlNames();
    const channel = new PgWakeChannel(listening, listening.options, names);
    const other = new PgWakeChannel(announcing, announcing.options, names);
    try {
      let wakes = 0;
      channel.listen(() => wakes++);
      // The first says that it listens now.
      await until(() => wakes === 1, { what: 'it listens' });
      other.announce();
      await until(() => wakes === 2, { what: 'it is woken' });
    } finally {
      for (const end of [channel, other]) await end.close();
      for (const pool of [listening, announcing]) await pool.end();
    }
  });

  it('whose connection was cut listens again, and says that it may have missed something', async () => {
    const pool = newPool();
    const channel = new PgWakeChannel(pool, pool.options, sqlNames());
    try {
      let wakes = 0;
      channel.listen(() => wakes++);
      await until(() => wakes === 1, { what: 'it listens' });
      await pool.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'`,
      );
      await until(() => wakes === 2, { what: 'it listens again' });
      channel.announce();
      await until(() => wakes === 3, { what: 'it hears its own call' });
    } finally {
      await channel.close();
      await pool.end();
    }
  });

  it('that cannot listen still announces', async () => {
    const pool = newPool();
    const [listening, other] = [
      new PgWakeChannel(pool, pool.options, sqlNames()),
      new PgWakeChannel(pool, undefined, sqlNames()),
    ];
    try {
      let wakes = 0;
      listening.listen(() => wakes++);
      await until(() => wakes === 1, { what: 'it listens' });
      other.listen(() => (wakes += 1_000));
      other.announce();
      await until(() => wakes === 2, { what: 'it is woken' });
    } finally {
      for (const end of [listening, other]) await end.close();
      await pool.end();
    }
  });
});
