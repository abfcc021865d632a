import pg from 'pg';
import type { MessageGateway } from '../gateway.js';
import type { QuoteRequest } from '../quote-requests.service.js';

export interface EventRow {
  id: string;
  status: string;
  about: string;
}

/** One database and one gateway: the two sides that have to agree. */
export class World {
  private readonly pool: pg.Pool;

  constructor(
    readonly databaseUrl: string,
    readonly gateway: MessageGateway,
  ) {
    this.pool = new pg.Pool({ connectionString: databaseUrl, connectionTimeoutMillis: 5_000 });
    this.pool.on('error', () => {}); // the server is stopped at the end
  }

  async quoteRequests(): Promise<QuoteRequest[]> {
    return this.rows<QuoteRequest>(
      `SELECT id, project_name AS "projectName", supplier_phone AS "supplierPhone"
       FROM quote_requests ORDER BY created_at`,
    );
  }

  async events(): Promise<EventRow[]> {
    return this.rows<EventRow>(
      `SELECT id, status, payload->>'quoteRequestId' AS about FROM outbox_events ORDER BY created_at`,
    );
  }

  async eventAbout(quoteRequestId: string): Promise<EventRow> {
    const event = (await this.events()).find(({ about }) => about === quoteRequestId);
    if (event === undefined) throw new Error(`no event about quote request ${quoteRequestId}`);
    return event;
  }

  /** How often the audit listener was called, by event. */
  async auditCalls(): Promise<Map<string, number>> {
    const entries = await this.rows<{ id: string; calls: number }>(
      'SELECT event_id AS id, calls FROM audit_log',
    );
    return new Map(entries.map(({ id, calls }) => [id, calls]));
  }

  /** Events for the coming days. */
  async scheduleReminders(count: number): Promise<void> {
    await this.pool.query(
      `INSERT INTO outbox_events (event_type, payload, scheduled_at)
       SELECT 'quote_request.reminder', jsonb_build_object('day', day), now() + day * interval '1 day'
       FROM generate_series(1, $1) AS day`,
      [count],
    );
  }

  async close(): Promise<void> {
    await this.pool.end();
    await this.gateway.close();
  }

  private async rows<T extends object>(sql: string): Promise<T[]> {
    return (await this.pool.query<T>(sql)).rows;
  }
}
