import { databaseCheck, type Complaint } from '../check.js';
import { EXPECTED_CONSTRAINTS } from '../expected-schema.js';
import { underOtherNames } from '../expected-names.js';

export const constraints = databaseCheck({
  name: 'constraints',
  group: 'schema',
  looksFor: 'keys and CHECKs that are missing or not validated',
  why: 'they keep a row from a state that neither claim, reaper nor prune looks at, and make an enqueue repeatable',
  needs: 'same-version',
  async examine(database, { names }) {
    const found = await database.rows<{ name: string; validated: boolean }>(
      `SELECT conname AS name, convalidated AS validated FROM pg_constraint
       WHERE connamespace = $1::regnamespace`,
      [`"${names.schema}"`],
    );
    return Object.entries(EXPECTED_CONSTRAINTS).flatMap(
      ([defaultName, { table, definition }]): Complaint[] => {
        const name = underOtherNames(defaultName, names);
        const owner = `"${names.schema}"."${underOtherNames(table, names)}"`;
        const constraint = found.find((one) => one.name === name);
        if (constraint === undefined) {
          const fix = `ALTER TABLE ${owner} ADD CONSTRAINT ${name} ${definition};`;
          return [{ level: 'error', what: `the constraint ${name} of ${owner} is missing`, fix }];
        }
        if (constraint.validated) return [];
        const fix = `ALTER TABLE ${owner} VALIDATE CONSTRAINT ${name};`;
        return [
          { level: 'warning', what: `the constraint ${name} of ${owner} is not validated`, fix },
        ];
      },
    );
  },
});
