import { databaseCheck, type Complaint } from '../check.js';
import { EXPECTED_INDEXES } from '../expected-schema.js';
import { alike, underOtherNames } from '../expected-names.js';

interface Found {
  readonly name: string;
  readonly definition: string;
  readonly valid: boolean;
}

export const indexes = databaseCheck({
  name: 'indexes',
  group: 'schema',
  looksFor: 'indexes that are missing, invalid or other than the migrations made them',
  why: 'without its index, each claim, each pass of the reaper and each list reads the whole table',
  needs: 'same-version',
  async examine(database, { names }) {
    const found = await database.rows<Found>(
      `SELECT class.relname AS name, pg_get_indexdef(class.oid) AS definition,
              index.indisvalid AND index.indisready AND index.indislive AS valid
       FROM pg_index AS index
       JOIN pg_class AS class ON class.oid = index.indexrelid
       WHERE class.relnamespace = $1::regnamespace`,
      [`"${names.schema}"`],
    );
    return Object.entries(EXPECTED_INDEXES).flatMap(([defaultName, definition]): Complaint[] => {
      const name = underOtherNames(defaultName, names);
      const wanted = underOtherNames(definition, names);
      const index = found.find((one) => one.name === name);
      const create = `${wanted.replace('CREATE INDEX', 'CREATE INDEX CONCURRENTLY')};`;
      const drop = `DROP INDEX CONCURRENTLY "${names.schema}"."${name}";`;
      if (index === undefined)
        return [{ level: 'error', what: `the index ${name} is missing`, fix: create }];
      if (!index.valid) {
        const fix = `REINDEX INDEX CONCURRENTLY "${names.schema}"."${name}";`;
        return [
          {
            level: 'error',
            what: `the index ${name} is invalid: it is written and never read`,
            fix,
          },
        ];
      }
      if (alike(index.definition, wanted)) return [];
      return [
        {
          level: 'warning',
          what: `the index ${name} is ${index.definition}, and not ${wanted}`,
          fix: `${drop} ${create}  -- each by itself: neither runs in a transaction`,
        },
      ];
    });
  },
});
