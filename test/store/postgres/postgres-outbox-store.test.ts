import { describeStore } from '../conformance.js';
import { openPostgres } from './open-postgres.js';

describeStore('PostgreSQL 14', () => openPostgres({ major: 14 }));
describeStore('PostgreSQL 18', () => openPostgres({ major: 18 }));
describeStore('PostgreSQL 18 under other names', () =>
  openPostgres({ schema: 'tenant-1', table: 'billing_outbox_events' }),
);
