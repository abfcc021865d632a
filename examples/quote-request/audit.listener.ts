import { Injectable } from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import type { Delivered } from 'nestjs-outbox-relay';
import { Database } from './database.js';
import { QUOTE_REQUEST_CREATED } from './quote-request.events.js';

/** Keeps the audit log. Keyed by the event's id, so that being called twice is harmless. */
@Injectable()
export class AuditListener {
  constructor(private readonly database: Database) {}

  @OnEvent(QUOTE_REQUEST_CREATED)
  async record({ _outbox, ...event }: Delivered<typeof QUOTE_REQUEST_CREATED>): Promise<void> {
    await this.database.pool.query(
      `INSERT INTO audit_log (event_id, entry) VALUES ($1, $2)
       ON CONFLICT (event_id) DO UPDATE SET calls = audit_log.calls + 1`,
      [_outbox.id, `${_outbox.eventType} ${event.quoteRequestId} ${event.projectName}`],
    );
  }
}
