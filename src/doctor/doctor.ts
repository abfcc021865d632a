import { errorText } from '../event/error-text.js';
import { OutboxError } from '../event/outbox-error.js';
import { CannotLook, type Check } from './check.js';
import { CHECKS } from './checks.js';
import type { CheckRun, Examination, Finding, Level } from './finding.js';
import type { Patient } from './patient.js';

const WORST_FIRST: readonly Level[] = ['error', 'warning', 'info'];

/**
 * Runs every check, one after the other: it is for a database that may be in trouble. It only reads.
 * @throws whatever the connection throws if the database cannot be reached
 */
export async function examine(
  patient: Patient,
  checks: readonly Check[] = CHECKS,
): Promise<Examination> {
  const findings: Finding[] = [];
  const runs: CheckRun[] = [];
  await patient.database?.rows('SELECT 1 AS reached');
  const hasOutbox = await isOfThisVersion(patient);
  for (const check of checks) {
    const remarks: string[] = [];
    const ran = await attempt(check, hasOutbox, patient, findings, (text) => remarks.push(text));
    runs.push({
      check: check.name,
      group: check.group,
      looksFor: check.looksFor,
      ran,
      remark: remarks.length === 0 ? null : remarks.join('; '),
    });
  }
  return {
    findings: findings.toSorted(
      (a, b) => WORST_FIRST.indexOf(a.level) - WORST_FIRST.indexOf(b.level),
    ),
    checks: runs,
  };
}

async function attempt(
  check: Check,
  hasOutbox: boolean,
  patient: Patient,
  findings: Finding[],
  remark: (text: string) => void,
): Promise<boolean> {
  if (!hasOutbox && check.needs !== 'nothing' && check.needs !== 'server') {
    remark('there is no outbox here that this version can use');
    return false;
  }
  try {
    for (const complaint of await check.examine(patient, remark))
      findings.push({ check: check.name, why: check.why, ...complaint });
    return true;
  } catch (error) {
    // One that may not look, or has a mistake, must not keep the others from looking.
    remark(error instanceof CannotLook ? error.message : errorText(error, 300));
    return false;
  }
}

async function isOfThisVersion({ store }: Patient): Promise<boolean> {
  try {
    await store.check();
    return true;
  } catch (error) {
    if (error instanceof OutboxError && error.code === 'SCHEMA_MISMATCH') return false;
    // Without a right to look there is one finding more, and not no examination: see the check own-rights.
    if (isPermissionDenied(error)) return false;
    throw error;
  }
}

function isPermissionDenied(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && error.code === '42501';
}
