import { createHash } from 'node:crypto';
import { databaseCheck, type Complaint } from '../check.js';
import { EXPECTED_FUNCTIONS } from '../expected-schema.js';
import { underDefaultNames, underOtherNames } from '../expected-names.js';
import { command } from '../patient.js';

export const functions = databaseCheck({
  name: 'functions',
  group: 'schema',
  looksFor: 'SQL functions that are missing or changed',
  why: 'they are the verbs of the outbox: each claim, settlement and enqueue is one call of them',
  needs: 'same-version',
  async examine(database, patient) {
    const { names } = patient;
    const found = await database.rows<{ name: string; arguments: string; source: string }>(
      `SELECT proname AS name, pg_get_function_identity_arguments(oid) AS arguments, prosrc AS source
       FROM pg_proc WHERE pronamespace = $1::regnamespace AND prokind = 'f'`,
      [`"${names.schema}"`],
    );
    const sources = new Map(
      found.map(({ name, arguments: list, source }) => [`${name}(${list})`, source]),
    );
    const fix = `${command(patient, 'migrate --print')} | psql "$DATABASE_URL"`;
    return Object.entries(EXPECTED_FUNCTIONS).flatMap(([signature, hash]): Complaint[] => {
      const name = underOtherNames(signature, names);
      const source = sources.get(name);
      if (source === undefined)
        return [{ level: 'error', what: `the function ${name} is missing`, fix }];
      if (hashOf(underDefaultNames(source, names)) === hash) return [];
      return [
        { level: 'error', what: `the function ${name} is not the one of the migrations`, fix },
      ];
    });
  },
});

/** Of a function's source under the default names. */
export function hashOf(source: string): string {
  return createHash('sha256').update(source.replaceAll('\r\n', '\n')).digest('hex').slice(0, 16);
}
