import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { SCHEMA_VERSION } from '../../src/store/postgres/schema-version.js';

/** The next version of this package, as it might be: this one's code, with one migration more. */
export interface NextVersion extends Disposable {
  /** Its command line. */
  readonly cli: string;
  /** The tests' apps, which use it. */
  readonly apps: string;
}

const root = path.resolve(import.meta.dirname, '../..');
const NEXT = SCHEMA_VERSION + 1;

/**
 * @param name of its folder below build/, where the packages of this checkout are found
 * @param breaksBefore whether code of this version can work with its schema: see docs/decisions/0021
 */
export function makeNextVersion(name: string, { breaksBefore = 0 } = {}): NextVersion {
  const home = path.join(root, 'build', `${name}-${process.pid}`);
  rmSync(home, { recursive: true, force: true });
  mkdirSync(home, { recursive: true });
  for (const part of ['dist', 'migrations', 'build/test'])
    cpSync(path.join(root, part), path.join(home, part), { recursive: true });

  const manifest = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as object;
  writeFileSync(
    path.join(home, 'package.json'),
    JSON.stringify({ ...manifest, version: '99.0.0' }),
  );
  const version = path.join(home, 'dist/store/postgres/schema-version.js');
  const code = readFileSync(version, 'utf8');
  const changed = code.replace(`SCHEMA_VERSION = ${SCHEMA_VERSION}`, `SCHEMA_VERSION = ${NEXT}`);
  if (changed === code)
    throw new Error(`${version} does not say SCHEMA_VERSION = ${SCHEMA_VERSION}`);
  writeFileSync(version, changed);
  // What a migration that comes later may do: a column with a default, and a verb that does the same by other means.
  writeFileSync(
    path.join(home, 'migrations', `${String(NEXT).padStart(3, '0')}_outbox_next.sql`),
    `ALTER TABLE public.outbox_events ADD COLUMN IF NOT EXISTS priority integer NOT NULL DEFAULT 0;

CREATE OR REPLACE FUNCTION public.outbox_renew(leases jsonb, lease_ms float8)
RETURNS uuid[]
LANGUAGE sql
SET search_path = ''
AS $outbox$
  WITH renewed AS (
    UPDATE public.outbox_events AS event
    SET leased_until = now() + lease_ms * interval '1 millisecond', priority = event.priority + 1
    FROM jsonb_to_recordset(leases) AS lease (id uuid, lease_token uuid)
    WHERE event.id = lease.id AND event.lease_token = lease.lease_token
    RETURNING event.id
  )
  SELECT coalesce(array_agg(id), '{}') FROM renewed;
$outbox$;

INSERT INTO public.outbox_migrations (version, name, breaks_before)
VALUES (${NEXT}, 'outbox_next', ${breaksBefore})
ON CONFLICT (version) DO NOTHING;
`,
  );
  return {
    cli: path.join(home, 'dist/cli.js'),
    apps: path.join(home, 'build/test/apps'),
    [Symbol.dispose]: () => rmSync(home, { recursive: true, force: true }),
  };
}
