import { readSchemaState, SCHEMA_VERSION } from '../store/postgres/schema-version.js';
import type { Finding, Group } from './finding.js';
import type { Patient } from './patient.js';

/** What a check has found; the doctor adds the check's name, and its `why` where there is none of its own. */
export type Complaint = Omit<Finding, 'check' | 'why'> & { readonly why?: string };

/** Looks for one thing that can go wrong. */
export interface Check {
  readonly name: string;
  readonly group: Group;
  /** What it looks for, in a few words. */
  readonly looksFor: string;
  readonly why: string;
  /**
   * `server`: a PostgreSQL connection. `tables`: one, and an outbox this code can use. `same-version`: one of just this
   * version. `store`: an outbox this code can use, wherever it is.
   */
  readonly needs: 'nothing' | 'store' | 'server' | 'tables' | 'same-version';
  /**
   * @param remark says what it could not see
   * @throws CannotLook if it can say nothing at all
   */
  examine(patient: Patient, remark: (text: string) => void): Promise<readonly Complaint[]>;
}

/** The same check with its database at hand. */
export function databaseCheck(
  check: Omit<Check, 'examine'> & {
    readonly needs: 'server' | 'tables' | 'same-version';
    examine(
      database: PatientDatabase,
      patient: Patient,
      remark: (text: string) => void,
    ): Promise<readonly Complaint[]>;
  },
): Check {
  return {
    ...check,
    examine: async (patient, remark) => {
      if (patient.database === undefined) throw new CannotLook(NO_CONNECTION);
      if (check.needs === 'same-version') {
        const { version } = await readSchemaState(patient.database.pool, patient.names);
        if (version > SCHEMA_VERSION)
          throw new CannotLook(`the database is at version ${version}, newer than this doctor`);
      }
      return check.examine(patient.database, patient, remark);
    },
  };
}

type PatientDatabase = NonNullable<Patient['database']>;

export const NO_CONNECTION =
  'it needs a PostgreSQL connection: with supabase, give relay.connectionString; with a store of your own there is none';

/** Why a check can say nothing. */
export class CannotLook extends Error {}
