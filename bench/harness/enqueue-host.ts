/**
 * node bench/harness/enqueue-host.ts <module> <url> <options as JSON>
 *
 * The process that writes. The module is the way of writing, from scenarios/enqueue-ways.ts.
 */
import { WAYS, type Way, type WayName } from '../contenders/enqueue-ways.ts';
import { postgresCpuUs } from './postgres-cpu.ts';
import { serve } from './remote.ts';

export interface WriteRequest {
  readonly concurrency: number;
  readonly seconds: number;
  readonly postmaster: number;
}

export interface Written {
  /** Events. */
  readonly count: number;
  readonly seconds: number;
  readonly nodeCpuUs: number;
  readonly postgresCpuUs: number | undefined;
}

const [, url = '', options = '{}'] = process.argv.slice(2);
const { way: name, connections } = JSON.parse(options) as { way: WayName; connections: number };
const writeOnce: Way = await WAYS[name](url, connections);

serve({ write });

async function write({ concurrency, seconds, postmaster }: WriteRequest): Promise<Written> {
  // Connections open, statements parsed, code compiled.
  await Promise.all(Array.from({ length: concurrency }, () => writeOnce()));
  const cpu = process.cpuUsage();
  const postgres = postgresCpuUs(postmaster);
  const start = performance.now();
  const end = start + seconds * 1_000;
  let count = 0;
  const writer = async (): Promise<void> => {
    while (performance.now() < end) {
      const written = await writeOnce();
      // Not `count += await …`, which reads the count before it waits, and loses what others add meanwhile.
      count += written;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, writer));
  const elapsed = (performance.now() - start) / 1_000;
  const { user, system } = process.cpuUsage(cpu);
  const postgresAfter = postgresCpuUs(postmaster);
  return {
    count,
    seconds: elapsed,
    nodeCpuUs: user + system,
    postgresCpuUs:
      postgres === undefined || postgresAfter === undefined ? undefined : postgresAfter - postgres,
  };
}
