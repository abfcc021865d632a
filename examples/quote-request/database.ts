import { Injectable, Logger, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import pg from 'pg';
import { Settings } from './settings.js';

const TABLES = `
  CREATE TABLE IF NOT EXISTS quote_requests (
    id             uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
    project_name   text        NOT NULL,
    supplier_phone text        NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT now()
  );
  CREATE TABLE IF NOT EXISTS audit_log (
    event_id   uuid        PRIMARY KEY,
    entry      text        NOT NULL,
    written_at timestamptz NOT NULL DEFAULT now(),
    calls      integer     NOT NULL DEFAULT 1
  )`;

@Injectable()
export class Database implements OnModuleInit, OnApplicationShutdown {
  readonly pool: pg.Pool;

  constructor(settings: Settings) {
    this.pool = new pg.Pool({ connectionString: settings.databaseUrl });
    // Without a listener, a broken idle connection ends the process.
    const logger = new Logger('Database');
    this.pool.on('error', (error) => logger.warn(`an idle connection broke: ${error.message}`));
  }

  /** Commits what `work` does on the client, or rolls all of it back and passes the error on. */
  async transaction<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await this.pool.connect();
    try {
      await client.query('BEGIN');
      const result = await work(client);
      await client.query('COMMIT');
      client.release();
      return result;
    } catch (error) {
      const rolledBack = await client.query('ROLLBACK').catch(() => undefined);
      client.release(rolledBack === undefined); // true: the connection is of no use to anybody
      throw error;
    }
  }

  /** For the example only: an application has its migrations. */
  async onModuleInit(): Promise<void> {
    await this.pool.query(TABLES);
  }

  async onApplicationShutdown(): Promise<void> {
    await this.pool.end();
  }
}
