/**
 * `error`: events are lost, late, open to strangers, or soon will be. `warning`: something to look at.
 * `info`: good to know.
 */
export type Level = 'error' | 'warning' | 'info';

/** Something that is not as it should be. */
export interface Finding {
  /** Name of the check, e.g. `row-level-security`. */
  readonly check: string;
  readonly level: Level;
  /** What was found. Names and types come from the database: neutralise them before they reach a terminal. */
  readonly what: string;
  readonly why: string;
  /** A command to copy, or what to do. */
  readonly fix: string;
}

/** What became of one check. */
export interface CheckRun {
  readonly check: string;
  readonly group: Group;
  readonly looksFor: string;
  readonly ran: boolean;
  /** Why it could not look, or not everywhere. */
  readonly remark: string | null;
}

/** What the doctor answers. */
export interface Examination {
  /** The worst first. */
  readonly findings: readonly Finding[];
  readonly checks: readonly CheckRun[];
}

export const GROUPS = ['schema', 'access', 'server', 'transactions', 'relays', 'events'] as const;

export type Group = (typeof GROUPS)[number];
