import { Injectable, Logger, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { chunk } from 'nestjs-outbox-relay';
import pg from 'pg';
import type { ProviderRecord } from './provider.js';
import { Settings } from './settings.js';

const COLUMNS = ['id', 'tenant', 'name', 'email', 'phone', 'updated_at'];

@Injectable()
export class RecordsRepository implements OnModuleInit, OnApplicationShutdown {
  private readonly pool: pg.Pool;

  constructor(settings: Settings) {
    this.pool = new pg.Pool({ connectionString: settings.databaseUrl });
    // Without a listener, a broken idle connection ends the process.
    this.pool.on('error', (error) => new Logger('Records').warn(error.message));
  }

  /**
   * Idempotent, and in as many statements as it takes: six parameters a row, so 10,922 rows fit into one. All of them in
   * one statement would fail the same way each time for a tenant with more.
   */
  async upsert(tenant: string, records: readonly ProviderRecord[]): Promise<void> {
    for (const part of chunk(records, COLUMNS.length)) {
      const rows = part.map(
        (_, row) => `(${COLUMNS.map((__, n) => `$${row * COLUMNS.length + n + 1}`).join(', ')})`,
      );
      await this.pool.query(
        `INSERT INTO records (${COLUMNS.join(', ')}) VALUES ${rows.join(', ')}
         ON CONFLICT (id) DO UPDATE
         SET name = excluded.name, email = excluded.email, phone = excluded.phone, updated_at = excluded.updated_at`,
        part.flatMap(({ id, name, email, phone, updatedAt }) => [
          id,
          tenant,
          name,
          email,
          phone,
          updatedAt,
        ]),
      );
    }
  }

  /** For the example only: an application has its migrations. */
  async onModuleInit(): Promise<void> {
    await this.pool.query(`CREATE TABLE IF NOT EXISTS records (
      id         text        PRIMARY KEY,
      tenant     text        NOT NULL,
      name       text        NOT NULL,
      email      text        NOT NULL,
      phone      text        NOT NULL,
      updated_at timestamptz NOT NULL)`);
  }

  async onApplicationShutdown(): Promise<void> {
    await this.pool.end();
  }
}
