/** What a backlog of a million does to the heap. */
import { OUTBOX_DEFAULTS, OUTBOX_TUNED } from '../contenders/registry.ts';
import type { Lab } from '../harness/lab.ts';
import { say } from '../harness/progress.ts';
import { megabytes, number, rate, type Report } from '../harness/report.ts';
import { chosen } from '../harness/settings.ts';
import { drainOnce } from './drain.ts';

export async function memory(lab: Lab): Promise<Report> {
  const count = lab.settings.memoryBacklog;
  const rows: string[][] = [];
  const figures: Record<string, string> = {};
  const raw: Record<string, unknown> = {};
  for (const entry of chosen(lab.settings, 'memory', [OUTBOX_DEFAULTS, OUTBOX_TUNED])) {
    const drained = await drainOnce(lab, entry, count, { sampleMemory: true });
    if (drained.memory === undefined) throw new Error('memory was not sampled');
    const { heapAtStart, heapMax, heapAfter, rssMax } = drained.memory;
    rows.push([
      entry.label,
      megabytes(heapAtStart),
      megabytes(heapMax),
      megabytes(heapAfter),
      megabytes(rssMax),
      rate(drained.perSecond),
      rate(drained.tenths.at(0) ?? NaN),
      rate(drained.tenths.at(-1) ?? NaN),
      number(drained.nodeCpuUs / count),
      number((drained.postgresCpuUs ?? NaN) / count),
    ]);
    figures[`memory.${entry.key}.heap`] = megabytes(heapMax);
    figures[`memory.${entry.key}.rss`] = megabytes(rssMax);
    figures[`memory.${entry.key}.perSecond`] = rate(drained.perSecond);
    raw[entry.key] = drained;
    say(
      `memory ${entry.key}: heap at most ${megabytes(heapMax)}, RSS ${megabytes(rssMax)}, ${rate(drained.perSecond)}/s`,
    );
  }
  return {
    tables: [
      {
        caption: `A backlog of ${count.toLocaleString('en-US')} drained by one process.`,
        columns: [
          'contender',
          'heap before',
          'heap, largest',
          'heap after a collection',
          'RSS, largest',
          'events/s',
          'first tenth/s',
          'last tenth/s',
          'Node µs/event',
          'PostgreSQL µs/event',
        ],
        rows,
      },
    ],
    figures,
    raw,
  };
}
