import { queueName } from '../../relay/queue-name.js';
import { CannotLook, databaseCheck, type Complaint } from '../check.js';
import { aliveRelays, several, type Patient } from '../patient.js';

interface Clock {
  readonly scheduled: boolean;
  readonly newest_s: number | null;
  readonly waiting_s: number | null;
  readonly failed: number;
}

/** One tick every 15 s, and one job a minute that sets the chain going again. */
const SILENT_S = 150;
const MANY_FAILED = 10;
/** Reports begin before pg-boss has made its schema. */
const STARTED_S = 60;

export const ticks = databaseCheck({
  name: 'ticks',
  group: 'relays',
  looksFor: 'the pg-boss schedule of the relay: missing, silent, or failing',
  why: 'the tick finds retries, reaps what a crash has left and prunes; without it only fresh events are delivered',
  needs: 'server',
  async examine(database, patient, remark) {
    const { bossSchema } = patient;
    if (bossSchema === undefined)
      throw new CannotLook('pg-boss is the application’s own, or the relay ticks on a timer');
    const queue = queueName(patient.names);
    const overdue = await relaysAliveForLong(patient);
    const nowhere = (what: string): Complaint[] => {
      if (overdue === 0)
        throw new CannotLook(`${what}: no relay has run here yet, or its ticks are elsewhere`);
      return [
        {
          level: 'warning',
          what: `${what}, although ${several(overdue, 'relay')} reported to be alive: they cannot start ticking, or tick elsewhere`,
          fix:
            'look for "cannot start ticking" in their log (a role that may not CREATE on the database cannot make the schema ' +
            `${bossSchema}: see Roles in the README). If pg-boss is the application’s: doctor --boss-schema <its schema>`,
        },
      ];
    };
    const [place] = await database.rows<{ there: boolean }>(
      `SELECT to_regclass(format('%I.schedule', $1::text)) IS NOT NULL
              AND to_regclass(format('%I.job', $1::text)) IS NOT NULL AS there`,
      [bossSchema],
    );
    if (!place?.there) return nowhere(`there is no pg-boss in the schema ${bossSchema}`);
    const [may] = await database.rows<{ look: boolean; role: string }>(
      `SELECT has_schema_privilege($1, 'USAGE')
              AND has_table_privilege(format('%I.job', $1::text), 'SELECT') AS look,
              quote_ident(current_user) AS role`,
      [bossSchema],
    );
    if (may?.look === false)
      throw new CannotLook(
        `the role ${may.role} may not look into pg-boss: GRANT USAGE ON SCHEMA ${bossSchema} TO ${may.role}; ` +
          `GRANT SELECT ON ALL TABLES IN SCHEMA ${bossSchema} TO ${may.role};`,
      );
    const [known] = await database.rows<{ there: boolean }>(
      `SELECT EXISTS (SELECT FROM "${bossSchema}".queue WHERE name = $1) AS there`,
      [queue],
    );
    if (!known?.there) return nowhere(`pg-boss has no queue ${queue}`);
    const [found] = await database.rows<Clock>(
      `SELECT EXISTS (SELECT FROM "${bossSchema}".schedule WHERE name = $1) AS scheduled,
              (SELECT extract(epoch FROM now() - max(greatest(created_on, started_on)))::integer
               FROM "${bossSchema}".job WHERE name = $1) AS newest_s,
              (SELECT extract(epoch FROM now() - min(start_after))::integer
               FROM "${bossSchema}".job WHERE name = $1 AND state IN ('created', 'retry')) AS waiting_s,
              (SELECT count(*) FROM "${bossSchema}".job
               WHERE name = $1 AND state = 'failed' AND completed_on > now() - interval '1 hour') AS failed`,
      [queue],
    );
    if (found === undefined) return [];
    const relays = await aliveRelays(patient).catch(() => undefined);
    if (relays?.length === 0) remark('no relay is alive, so no tick is expected');
    return complaintsOf(found, queue, bossSchema, relays?.length !== 0);
  },
});

/** How many relays have been alive for so long that they should tick. */
async function relaysAliveForLong(patient: Patient): Promise<number> {
  const relays = (await aliveRelays(patient).catch(() => undefined)) ?? [];
  return relays.filter(
    ({ startedAt, seenAt }) => seenAt.getTime() - startedAt.getTime() > STARTED_S * 1_000,
  ).length;
}

const RESTART = 'restart a relaying process (relay must not be false): it makes what is missing';

function complaintsOf(
  { scheduled, newest_s: newest, waiting_s: waiting, failed }: Clock,
  queue: string,
  bossSchema: string,
  expected: boolean,
): Complaint[] {
  const complaints: Complaint[] = [];
  if (!scheduled)
    complaints.push({
      level: 'error',
      what: `pg-boss has no schedule for the queue ${queue}`,
      fix: RESTART,
    });
  if (expected && (newest === null || newest > SILENT_S))
    complaints.push({
      level: 'error',
      what:
        newest === null
          ? `the queue ${queue} has no tick at all`
          : `the last tick of ${queue} was ${newest} s ago; there should be one every 15 s`,
      fix: RESTART,
    });
  else if (expected && waiting !== null && waiting > SILENT_S)
    complaints.push({
      level: 'error',
      what: `a tick of ${queue} has been waiting to be fetched for ${waiting} s`,
      fix: RESTART,
    });
  if (failed >= MANY_FAILED)
    complaints.push({
      level: 'warning',
      what: `${failed} ticks of ${queue} have failed within the last hour`,
      fix: `SELECT completed_on, output FROM "${bossSchema}".job WHERE name = '${queue}' AND state = 'failed' ORDER BY completed_on DESC LIMIT 5;`,
    });
  return complaints;
}
