import { parseArgs } from 'node:util';

export const SCENARIOS = [
  'drain',
  'tuning',
  'latency',
  'enqueue',
  'growth',
  'memory',
  'processes',
  'idle',
  'slow-listener',
] as const;

export type ScenarioName = (typeof SCENARIOS)[number];

/** How large a run is. */
export interface Settings {
  readonly only: readonly ScenarioName[];
  /** `full` is what the documentation shows; nothing else is written there. */
  readonly size: 'full' | 'custom' | 'smoke';
  /** Only contenders whose key contains one of these. */
  readonly contenders: readonly string[] | undefined;
  /** How often each measurement is made; the median counts. */
  readonly rounds: number;
  /** Events of a drain. */
  readonly events: number;
  readonly tuningEvents: number;
  readonly latency: { readonly perSecond: number; readonly seconds: number };
  readonly enqueue: { readonly seconds: number; readonly concurrency: readonly number[] };
  readonly growth: {
    readonly completed: number;
    readonly delayed: number;
    readonly claims: number;
    readonly underSnapshot: number;
    readonly pruned: number;
  };
  readonly memoryBacklog: number;
  readonly processes: { readonly counts: readonly number[]; readonly events: number };
  readonly idleSeconds: number;
  readonly slow: { readonly events: number; readonly every: number; readonly ms: number };
}

const FULL: Settings = {
  only: SCENARIOS,
  size: 'full',
  contenders: undefined,
  rounds: 3,
  events: 20_000,
  tuningEvents: 50_000,
  latency: { perSecond: 100, seconds: 20 },
  enqueue: { seconds: 3, concurrency: [1, 10, 20] },
  growth: {
    completed: 5_000_000,
    delayed: 100_000,
    claims: 200,
    underSnapshot: 200_000,
    pruned: 300_000,
  },
  memoryBacklog: 1_000_000,
  processes: { counts: [1, 2, 4], events: 100_000 },
  idleSeconds: 30,
  slow: { events: 2_000, every: 100, ms: 1_000 },
};

const SMOKE: Settings = {
  only: SCENARIOS,
  size: 'smoke',
  contenders: undefined,
  rounds: 1,
  events: 200,
  tuningEvents: 200,
  latency: { perSecond: 100, seconds: 0.3 },
  enqueue: { seconds: 0.1, concurrency: [2] },
  growth: { completed: 1_000, delayed: 100, claims: 3, underSnapshot: 500, pruned: 1_000 },
  memoryBacklog: 500,
  processes: { counts: [2], events: 500 },
  idleSeconds: 0.5,
  slow: { events: 100, every: 50, ms: 50 },
};

export const USAGE = `npm run bench -- [options]

  --only drain,latency   Scenarios: ${SCENARIOS.join(', ')}. Default: all.
  --n 20000              Events; the sizes of the other scenarios shrink or grow in proportion.
  --rounds 3             How often each measurement is made.
  --contenders outbox    Only those whose key contains one of these words.
  --smoke                A few hundred events, each contender once: does everything still work?

A run with every size as it comes is written to docs/benchmarks.md; any other to build/bench/benchmarks.md.`;

/**
 * Those that were asked for. In a smoke test every contender drains once, which is enough to see that it works; the
 * other scenarios make do with this library.
 */
export function chosen<T extends { readonly key: string }>(
  { contenders, size }: Settings,
  where: ScenarioName,
  all: readonly T[],
): readonly T[] {
  if (contenders !== undefined)
    return all.filter(({ key }) => contenders.some((word) => key.includes(word)));
  if (size !== 'smoke') return all;
  // One loop is two loops less one.
  if (where === 'drain') return all.filter(({ key }) => !/^limit.*x1$/.test(key));
  return all.filter(({ key }) => /^(outbox|enqueue)/.test(key) && key !== 'outbox-tuned');
}

/** @throws Error that says what to give instead */
export function readSettings(args: string[]): Settings {
  const { values } = parseArgs({
    args,
    options: {
      only: { type: 'string' },
      n: { type: 'string' },
      rounds: { type: 'string' },
      contenders: { type: 'string' },
      smoke: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) throw new Error(USAGE);
  const base = values.smoke ? SMOKE : FULL;
  const scaled = values.n === undefined ? base : scale(base, whole('n', values.n) / base.events);
  const isCustom =
    values.n !== undefined || values.rounds !== undefined || values.contenders !== undefined;
  return {
    ...scaled,
    only: values.only === undefined ? base.only : values.only.split(',').map(scenario),
    contenders: values.contenders?.split(','),
    rounds: values.rounds === undefined ? base.rounds : whole('rounds', values.rounds),
    size: values.smoke ? 'smoke' : isCustom ? 'custom' : 'full',
  };
}

/** Sizes in proportion; times, rates and ratios stay, or shrink down to what still means something. */
function scale(base: Settings, factor: number): Settings {
  const by = (size: number, least: number): number => Math.max(least, Math.round(size * factor));
  const { latency, enqueue, growth, processes, slow } = base;
  const shorter = Math.min(1, Math.max(factor, 0.1));
  return {
    ...base,
    events: by(base.events, 1),
    tuningEvents: by(base.tuningEvents, 1_000),
    latency: { ...latency, seconds: Math.max(1, latency.seconds * shorter) },
    enqueue: { ...enqueue, seconds: Math.max(1, enqueue.seconds * shorter) },
    growth: {
      completed: by(growth.completed, 1_000),
      delayed: by(growth.delayed, 100),
      claims: by(growth.claims, 10),
      underSnapshot: by(growth.underSnapshot, 1_000),
      pruned: by(growth.pruned, 1_000),
    },
    memoryBacklog: by(base.memoryBacklog, 1_000),
    processes: { ...processes, events: by(processes.events, 1_000) },
    idleSeconds: Math.max(1, base.idleSeconds * shorter),
    slow: { ...slow, events: by(slow.events, 200) },
  };
}

function scenario(name: string): ScenarioName {
  const known = SCENARIOS.find((one) => one === name);
  if (known === undefined)
    throw new Error(`no scenario "${name}"; there are ${SCENARIOS.join(', ')}`);
  return known;
}

function whole(option: string, value: string): number {
  const number = Number(value);
  if (Number.isInteger(number) && number > 0) return number;
  throw new Error(`--${option} must be a whole number above 0, got ${JSON.stringify(value)}`);
}
