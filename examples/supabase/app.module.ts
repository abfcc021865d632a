import { Injectable, Module } from '@nestjs/common';
import { EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import { createClient } from '@supabase/supabase-js';
import { OutboxModule, OutboxService, type Delivered } from 'nestjs-outbox-relay';

const supabase = createClient(setting('SUPABASE_URL'), setting('SUPABASE_SERVICE_ROLE_KEY'), {
  auth: { persistSession: false, autoRefreshToken: false, detectSessionInUrl: false },
  // A redirect turns a POST into a GET, whose answer looks like success.
  global: { fetch: async (input, init) => fetch(input, { ...init, redirect: 'error' }) },
});

@Injectable()
export class QuoteRequestsService {
  constructor(private readonly outbox: OutboxService) {}

  /** The row and its event in one request, which is one transaction. */
  async create(projectName: string): Promise<string> {
    const { data, error } = await supabase.rpc('create_quote_request', {
      project_name: projectName,
    });
    // supabase-js answers errors, it does not throw them.
    if (error) throw new Error(error.message);
    this.outbox.wake();
    return data as string;
  }

  /** A plain update: a trigger enqueues. */
  async assign(quoteRequestId: string, supplierId: number): Promise<void> {
    const { error } = await supabase
      .from('quote_requests')
      .update({ supplier_id: supplierId })
      .eq('id', quoteRequestId);
    if (error) throw new Error(error.message);
    this.outbox.wake();
  }
}

@Injectable()
export class NotificationListener {
  private failures = 1;

  @OnEvent('quote_request.created')
  async notify(event: Delivered): Promise<void> {
    const { attempt } = event._outbox;
    if (this.failures-- > 0) {
      console.log(`created: no signal (attempt ${attempt})`);
      throw new Error('no signal');
    }
    console.log(`created: ${String(event['projectName'])}, told (attempt ${attempt})`);
  }

  @OnEvent('quote_request.assigned')
  async assign(event: Delivered): Promise<void> {
    console.log(`assigned: supplier ${String(event['supplierId'])}, told`);
  }
}

@Module({
  imports: [
    EventEmitterModule.forRoot(),
    OutboxModule.forRoot({
      supabase,
      relay: { connectionString: setting('DATABASE_URL') },
      // In a hurry: the default waits two minutes after the first failure.
      retry: { backoff: () => 200 },
    }),
  ],
  providers: [QuoteRequestsService, NotificationListener],
})
export class AppModule {}

function setting(name: string): string {
  const value = process.env[name];
  if (value === undefined || value === '') throw new Error(`${name} is not set`);
  return value;
}
