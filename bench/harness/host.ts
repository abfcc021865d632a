/**
 * node bench/harness/host.ts <module> <url> <options as JSON>
 *
 * The process that a contender lives in. It measures from within, and answers the scenario's calls.
 */
import pg from 'pg';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Backlog, BenchPayload, Contender, MakeContender } from '../contenders/contender.ts';
import { FILLER } from '../contenders/contender.ts';
import { nowUs } from './clock.ts';
import { postgresCpuUs } from './postgres-cpu.ts';
import { serve } from './remote.ts';

export interface DrainRequest {
  readonly count: number;
  readonly postmaster: number;
  /** How long it has for starting up before it gets at the events. */
  readonly startMs: number;
  /** Notes the largest heap on the way. */
  readonly sampleMemory?: boolean;
  /** How long a slow event's listener takes. */
  readonly slowMs?: number;
}

export interface Drained {
  /** From the first call of the listener until everything is settled. */
  readonly seconds: number;
  readonly nodeCpuUs: number;
  readonly postgresCpuUs: number | undefined;
  readonly heard: number;
  readonly duplicates: number;
  /** Seconds from the first call until the last fast event was done. */
  readonly fastSeconds: number;
  /** Of the events in each tenth of the run, how many a second. */
  readonly tenths: readonly number[];
  readonly memory: Memory | undefined;
}

export interface Memory {
  readonly heapAtStart: number;
  readonly heapMax: number;
  readonly rssMax: number;
  /** After a garbage collection, if the process may ask for one. */
  readonly heapAfter: number;
}

/** Which events, and when, by the machine's steady clock. */
export interface Moments {
  readonly numbers: Float64Array;
  readonly atUs: Float64Array;
}

export interface PaceRequest {
  readonly perSecond: number;
  readonly count: number;
  /** The number of the first event. */
  readonly from: number;
}

const SETTLED_POLL_MS = 2;
const MEMORY_POLL_MS = 50;

const [modulePath = '', url = '', options = '{}'] = process.argv.slice(2);
const { create } = (await import(modulePath)) as { create: MakeContender };
const contender: Contender = await create(url, JSON.parse(options) as never);

const heard: { n: number; atUs: number }[] = [];

serve({
  prepare: () => contender.prepare(),
  fill: (backlog: Backlog) => contender.fill(backlog),
  drain,
  listen: () =>
    contender.start(({ n }) => {
      heard.push({ n, atUs: nowUs() });
      return undefined;
    }),
  heard: () => moments(heard),
  pace,
  idle,
  claimTimes: () => contender.claimTimes?.() ?? [],
  prune: () => contender.prune?.(),
  wake: () => contender.wake?.(),
});

async function drain({
  count,
  postmaster,
  startMs,
  sampleMemory,
  slowMs,
}: DrainRequest): Promise<Drained> {
  const watcher = new pg.Client({ connectionString: url });
  await watcher.connect();
  const memory = sampleMemory === true ? watchMemory() : undefined;

  const seen = new Uint8Array(count + 1);
  const tenthsAtUs: number[] = [];
  let distinct = 0;
  let duplicates = 0;
  let start = { atUs: 0, cpu: process.cpuUsage(), postgres: postgresCpuUs(postmaster) };
  let lastFastUs = 0;
  const { promise: allHeard, resolve } = Promise.withResolvers<void>();

  // Whoever is up first must not begin with a head start, nor while it is still starting up in the background.
  await watcher.query(`BEGIN; LOCK TABLE ${contender.table}`);
  const started = contender.start((payload) => {
    if (distinct === 0) {
      start = { atUs: nowUs(), cpu: process.cpuUsage(), postgres: postgresCpuUs(postmaster) };
    }
    if (seen[payload.n] === 1) duplicates++;
    else {
      seen[payload.n] = 1;
      if (++distinct % Math.ceil(count / 10) === 0) tenthsAtUs.push(nowUs());
      if (distinct === count) resolve();
    }
    if (slowMs === undefined) return undefined;
    if (payload.slow) return sleep(slowMs);
    lastFastUs = nowUs();
    return undefined;
  });
  await sleep(startMs);
  await watcher.query('COMMIT');
  await started;
  await allHeard;
  while (await isOpen(watcher)) await sleep(SETTLED_POLL_MS);

  const endUs = nowUs();
  const cpu = process.cpuUsage(start.cpu);
  const postgres = postgresCpuUs(postmaster);
  await watcher.end();
  return {
    seconds: (endUs - start.atUs) / 1e6,
    nodeCpuUs: cpu.user + cpu.system,
    postgresCpuUs:
      postgres === undefined || start.postgres === undefined
        ? undefined
        : postgres - start.postgres,
    heard: distinct,
    duplicates,
    fastSeconds: (lastFastUs - start.atUs) / 1e6,
    tenths: tenthsAtUs.map((atUs, i) => {
      const fromUs = i === 0 ? start.atUs : (tenthsAtUs[i - 1] ?? 0);
      return Math.ceil(count / 10) / ((atUs - fromUs) / 1e6);
    }),
    memory: memory?.(),
  };
}

async function isOpen(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ open: boolean }>(contender.openSql);
  return rows[0]?.open === true;
}

function watchMemory(): () => Memory {
  globalThis.gc?.();
  const heapAtStart = process.memoryUsage().heapUsed;
  let heapMax = 0;
  let rssMax = 0;
  const timer = setInterval(() => {
    const { heapUsed, rss } = process.memoryUsage();
    heapMax = Math.max(heapMax, heapUsed);
    rssMax = Math.max(rssMax, rss);
  }, MEMORY_POLL_MS);
  return () => {
    clearInterval(timer);
    globalThis.gc?.();
    return { heapAtStart, heapMax, rssMax, heapAfter: process.memoryUsage().heapUsed };
  };
}

/** Enqueues at a rate, whether or not what went before is done, at moments that follow no rhythm. */
async function pace({ perSecond, count, from }: PaceRequest): Promise<Moments> {
  const enqueue = await contender.enqueuer?.();
  if (enqueue === undefined) throw new Error('this contender does not enqueue');
  const committed: { n: number; atUs: number }[] = [];
  const random = seeded(from);
  const pending: Promise<void>[] = [];
  let dueUs = nowUs();
  for (let n = from; n < from + count; n++) {
    dueUs += (-Math.log(1 - random()) * 1e6) / perSecond;
    const waitMs = (dueUs - nowUs()) / 1_000;
    if (waitMs > 0) await sleep(waitMs);
    const payload: BenchPayload = { n, slow: false, text: FILLER };
    pending.push(enqueue(payload).then(() => void committed.push({ n, atUs: nowUs() })));
  }
  await Promise.all(pending);
  return moments(committed);
}

async function idle({ seconds }: { seconds: number }): Promise<{ cpuUs: number }> {
  const before = process.cpuUsage();
  await sleep(seconds * 1_000);
  const { user, system } = process.cpuUsage(before);
  return { cpuUs: user + system };
}

function moments(noted: readonly { n: number; atUs: number }[]): Moments {
  return {
    numbers: Float64Array.from(noted, ({ n }) => n),
    atUs: Float64Array.from(noted, ({ atUs }) => atUs),
  };
}

/** The same moments for every contender. */
function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
