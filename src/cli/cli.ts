import type { Command } from 'commander';
import { invalid } from '../event/outbox-error.js';
import { assertConnectionString } from '../store/postgres/connection-string.js';
import { openPool } from '../store/postgres/open-pool.js';
import { ended } from '../store/postgres/pg-pool.js';
import type pg from 'pg';
import { PostgresOutboxStore } from '../store/postgres/postgres-outbox-store.js';
import { sqlNames, type SqlNames } from '../store/postgres/sql-names.js';
import { EXIT } from './exit-code.js';
import type { Screen } from './screen.js';

/** What every command understands. */
export interface GlobalOptions {
  readonly connection?: string;
  readonly schema?: string;
  readonly table?: string;
  readonly json: boolean;
}

/** The database a command works on. */
export interface Database {
  readonly pool: pg.Pool;
  readonly names: SqlNames;
  readonly store: PostgresOutboxStore;
}

/** One run of the command line. */
export class Cli {
  exitCode: number = EXIT.fine;
  /** Aborted by the first Ctrl+C, for commands that work in batches; the second ends the process. */
  private readonly stopping = new AbortController();

  constructor(
    readonly screen: Screen,
    readonly env: NodeJS.ProcessEnv,
  ) {}

  /** @param check `false`: the command copes with an outbox that is missing or of another version */
  async withDatabase<T>(
    options: GlobalOptions,
    work: (database: Database) => Promise<T>,
    { check = true }: { check?: boolean } = {},
  ): Promise<T> {
    const names = sqlNames(options.schema, options.table);
    const pool = openPool(this.connectionString(options), () => {});
    try {
      const store = new PostgresOutboxStore(pool, names);
      if (check) await store.check();
      return await work({ pool, names, store });
    } finally {
      await ended(pool.end());
    }
  }

  /** Lets Ctrl+C end the work after the batch under way. */
  untilStopped(): AbortSignal {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signal, () => {
        if (this.stopping.signal.aborted) process.exit(EXIT.interrupted);
        this.stopping.abort();
      });
    }
    return this.stopping.signal;
  }

  private connectionString({ connection }: GlobalOptions): string {
    const [name, value] =
      connection === undefined
        ? ['DATABASE_URL', this.env['DATABASE_URL']]
        : ['--connection', connection];
    if (connection === undefined && (value === undefined || value === ''))
      throw invalid('no database: pass --connection postgres://… or set DATABASE_URL');
    assertConnectionString(name, value);
    return value;
  }
}

/** Options of the command and of the program, wherever they were written. */
export function optionsOf(command: Command): object {
  const chain: Command[] = [];
  for (let one: Command | null = command; one !== null; one = one.parent) chain.unshift(one);
  return Object.assign({ json: false }, ...chain.map((one) => one.opts()));
}
