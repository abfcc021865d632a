import { migrate } from '../../../src/schema/migrate.js';
import { sqlNames } from '../../../src/store/postgres/sql-names.js';
import { openClient } from '../../../src/store/supabase/supabase-client.js';
import { SupabaseOutboxStore } from '../../../src/store/supabase/supabase-outbox-store.js';
import { SupabaseRpc } from '../../../src/store/supabase/supabase-rpc.js';
import { describeOnSupabase, type ProjectKind } from '../../support/supabase/projects.js';
import { describeStore, type StoreUnderTest } from '../conformance.js';
import { sqlSide } from '../postgres/open-postgres.js';

describeOnSupabase('Supabase', (kind) => describeStore('the store', () => openSupabase(kind)));

async function openSupabase(kind: ProjectKind): Promise<StoreUnderTest> {
  const project = await kind.open();
  const names = sqlNames('public', kind.table);
  await migrate(project.pool, names);
  const { url, keys } = project;
  const client = openClient({ url, serviceRoleKey: keys.secret });
  const store = new SupabaseOutboxStore(new SupabaseRpc(() => client, names), names);
  // Also waits until the Data API knows of the migration.
  await store.check();
  return {
    ...sqlSide(project, names),
    store,
    [Symbol.asyncDispose]: () => project[Symbol.asyncDispose](),
  };
}
