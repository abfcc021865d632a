import { databaseCheck, type Complaint } from '../check.js';
import { EXPECTED_CONSTRAINTS } from '../expected-schema.js';
import { alike, underOtherNames } from '../expected-names.js';

export const constraints = databaseCheck({
  name: 'constraints',
  group: 'schema',
  looksFor:
    'keys and CHECKs that are missing, not validated, or other than the migrations made them',
  why: 'they keep a row from a state that neither claim, reaper nor prune looks at, and make an enqueue repeatable',
  needs: 'same-version',
  async examine(database, { names }) {
    const found = await database.rows<{ name: string; validated: boolean; definition: string }>(
      `SELECT conname AS name, convalidated AS validated, pg_get_constraintdef(oid) AS definition
       FROM pg_constraint
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
        if (!alike(constraint.definition.replace(/ NOT VALID$/, ''), definition)) {
          const fix = `ALTER TABLE ${owner} DROP CONSTRAINT ${name}, ADD CONSTRAINT ${name} ${definition};`;
          const what = `the constraint ${name} of ${owner} is ${constraint.definition}, and not ${definition}`;
          return [{ level: 'warning', what, fix }];
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
