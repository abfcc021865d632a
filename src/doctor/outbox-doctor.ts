import { examine } from './doctor.js';
import type { Examination } from './finding.js';
import type { Patient } from './patient.js';

/** Looks for what is wrong with the outbox, its database and its relays. It only reads. */
export class OutboxDoctor {
  constructor(private readonly patient: () => Patient) {}

  /**
   * Runs every check: `const { findings } = await doctor.examine();`. Some dozens of small queries, some of which count
   * what waits; for a health check every few seconds there is `OutboxMonitor`.
   *
   * @returns what was found, the worst first, and which checks could not look and why. Without a PostgreSQL connection
   * (`supabase` without `relay.connectionString`, a store of your own) most cannot
   * @throws the connection's error if the database cannot be reached
   */
  async examine(): Promise<Examination> {
    return examine(this.patient());
  }
}
