import type { SqlNames } from '../store/postgres/sql-names.js';
import { EXPECTED_FUNCTIONS, EXPECTED_TABLES } from './expected-schema.js';

/** A text about the outbox under its default names, for one that is called otherwise. */
export function underOtherNames(text: string, { schema, prefix }: SqlNames): string {
  return text
    .replaceAll(/\bidx_outbox_(?=\w)/g, `idx_${prefix}_`)
    .replaceAll(/\bpublic\.outbox_(\w+)/g, `"${schema}"."${prefix}_$1"`)
    .replaceAll(/(?<![\w."])outbox_(?=\w)/g, `${prefix}_`);
}

/** The source of a function as the migrations have it, whatever the outbox is called. */
export function underDefaultNames(source: string, { schema, prefix }: SqlNames): string {
  return source
    .replaceAll(new RegExp(`"${schema}"\\."${prefix}_(\\w+)"`, 'g'), 'public.outbox_$1')
    .replaceAll(/"public"\."outbox_(\w+)"/g, 'public.outbox_$1')
    .replaceAll(new RegExp(`\\bCONSTRAINT ${prefix}_(\\w+)`, 'g'), 'CONSTRAINT outbox_$1');
}

/**
 * Whether two definitions, as the server prints them, say the same. Once dumped and restored, it prints casts and
 * parentheses at other places; quotes come and go with what a name needs.
 */
export function alike(one: string, other: string): boolean {
  return plain(one) === plain(other);
}

function plain(definition: string): string {
  return definition
    .replace(/ ON (?:ONLY )?\S+ /, ' ON ')
    .replaceAll(/::(?:character varying|text)(?:\[\])?/g, '')
    .replaceAll(/[()"]/g, '');
}

export function tableNames(names: SqlNames): string[] {
  return EXPECTED_TABLES.map((name) => underOtherNames(name, names));
}

/** Without their arguments. */
export function functionNames(names: SqlNames): string[] {
  const all = Object.keys(EXPECTED_FUNCTIONS).map((signature) => signature.replace(/\(.*$/s, ''));
  return [...new Set(all)].map((name) => underOtherNames(name, names));
}
