import { OutboxError } from '../../event/outbox-error.js';
import { CannotLook, type Check, type Complaint } from '../check.js';
import { readSchemaState, SCHEMA_VERSION } from '../../store/postgres/schema-version.js';
import { command, type Patient } from '../patient.js';

export const schemaVersion: Check = {
  name: 'schema-version',
  group: 'schema',
  looksFor: 'an outbox that is missing, older or newer than this code',
  why: 'the code calls functions and reads columns of its own version: with another one, nothing is stored or delivered',
  needs: 'nothing',
  async examine(patient) {
    try {
      await patient.store.check();
      return await newer(patient);
    } catch (error) {
      if (!(error instanceof OutboxError) || error.code !== 'SCHEMA_MISMATCH') throw error;
      if (error.message.startsWith('row level security'))
        throw new CannotLook('row level security hides the version from this role: see own-rights');
      const outdated = error.message.includes('cannot use any more');
      return [
        {
          level: 'error',
          what: error.message.replace(/: (?:run|upgrade) .*$/s, ''),
          fix: outdated ? 'npm install nestjs-outbox-relay@latest' : command(patient, 'migrate'),
        },
      ];
    }
  },
};

/** As it should be during a deployment; and if it stays, this code is the older one. */
async function newer({ database, names }: Patient): Promise<Complaint[]> {
  if (database === undefined) return [];
  const { version } = await readSchemaState(database.pool, names);
  if (version <= SCHEMA_VERSION) return [];
  return [
    {
      level: 'info',
      what: `the database is at outbox version ${version}, newer than the ${SCHEMA_VERSION} of this code, which goes on working`,
      why: 'the doctor of an older version cannot tell whether indexes and functions are as they should be',
      fix: 'npm install nestjs-outbox-relay@latest',
    },
  ];
}
