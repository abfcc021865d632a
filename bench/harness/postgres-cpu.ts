import { readFileSync } from 'node:fs';

const TICK_US = 10_000;

/**
 * Microseconds of CPU that PostgreSQL has used so far: the postmaster and all its children, those that have ended
 * included. `undefined` where the system does not tell (anything but Linux).
 */
export function postgresCpuUs(postmaster: number): number | undefined {
  try {
    const children = read(`/proc/${postmaster}/task/${postmaster}/children`).trim().split(' ');
    // utime, stime, cutime, cstime: the 14th to 17th field; the second may contain spaces.
    const fields = read(`/proc/${postmaster}/stat`).split(') ')[1]?.split(' ').slice(11, 15) ?? [];
    const ended = fields.reduce((sum, field) => sum + Number(field), 0) * TICK_US;
    return children.reduce((sum, pid) => sum + childUs(pid), ended);
  } catch {
    return undefined;
  }
}

function childUs(pid: string): number {
  try {
    const [nanoseconds = '0'] = read(`/proc/${pid}/schedstat`).split(' ');
    return Number(nanoseconds) / 1_000;
  } catch {
    return 0; // ended meanwhile: the postmaster has its time by now, or at the next reading
  }
}

function read(file: string): string {
  return readFileSync(file, 'utf8');
}
