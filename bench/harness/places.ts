import path from 'node:path';

export const BENCH = path.dirname(import.meta.dirname);
export const ROOT = path.dirname(BENCH);
/** What a run leaves behind, apart from the documentation. */
export const RESULTS = path.join(ROOT, 'build', 'bench');
/** A copy of dist and migrations, made at the beginning of a run. */
export const PACKAGE_COPY = path.join(RESULTS, 'package');
