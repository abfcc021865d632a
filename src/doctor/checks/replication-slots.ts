import { databaseCheck, type Complaint } from '../check.js';

/** Transactions that a slot's snapshot may be behind. */
const FAR_BEHIND = 1_000_000;

export const replicationSlots = databaseCheck({
  name: 'replication-slots',
  group: 'transactions',
  looksFor: 'replication slots that nobody reads, or that hold an old snapshot',
  why: 'the server keeps all WAL since then until its disk is full, and vacuum clears away nothing that the slot might see',
  needs: 'server',
  async examine(database) {
    const slots = await database.rows<{
      name: string;
      literal: string;
      active: boolean;
      behind: number | null;
    }>(
      `SELECT slot_name AS name, quote_literal(slot_name) AS literal, active, age(xmin) AS behind
       FROM pg_replication_slots
       WHERE NOT temporary
         AND ((NOT active AND restart_lsn IS NOT NULL) OR age(xmin) > ${FAR_BEHIND})
       ORDER BY slot_name`,
    );
    return slots.map(({ name, literal, active, behind }): Complaint => ({
      level: 'warning',
      what: active
        ? `the replication slot ${name} holds a snapshot ${behind ?? 0} transactions behind`
        : `nobody reads the replication slot ${name}`,
      fix: active
        ? 'look at the standby behind it: a long query there, with hot_standby_feedback on'
        : `SELECT pg_drop_replication_slot(${literal});  -- if its reader will not come back`,
    }));
  },
});
