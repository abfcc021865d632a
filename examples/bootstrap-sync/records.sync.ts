import { Injectable } from '@nestjs/common';
import { BootstrapPublisher, type GateResult } from 'nestjs-outbox-relay';
import type { ProviderRecord } from './provider.js';
import { RecordsRepository } from './records.repository.js';
import { Settings } from './settings.js';

/** Fetches a tenant's records once. Every request for them may call it: stamped, it costs one statement. */
@Injectable()
export class RecordsSync {
  constructor(
    private readonly publisher: BootstrapPublisher,
    private readonly records: RecordsRepository,
    private readonly settings: Settings,
  ) {}

  async sync(tenant: string): Promise<GateResult> {
    return this.publisher.run({
      key: `records:${tenant}`,
      eventType: 'record.bulk.upserted',
      load: async ({ signal }) => {
        const response = await fetch(`${this.settings.providerUrl}/${tenant}`, { signal });
        if (!response.ok)
          throw Object.assign(new Error(`the provider answers ${response.status}`), {
            status: response.status,
          });
        const records = (await response.json()) as ProviderRecord[];
        await this.records.upsert(tenant, records);
        return records;
      },
      payload: (records) => ({ tenant, recordIds: records.map(({ id }) => id) }),
      // A tenant without records has been synced.
      whenEmpty: 'stamp',
    });
  }
}
