/** Microseconds of the machine's steady clock: the same in every process. */
export function nowUs(): number {
  return Number(process.hrtime.bigint() / 1_000n);
}
