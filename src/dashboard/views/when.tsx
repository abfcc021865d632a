import type { JSX } from 'preact';
import type { Visit } from './visit.js';

/** A moment. Without a `timeZone` a script puts it into the viewer's own. */
export function When({
  visit,
  at,
  short = false,
}: {
  visit: Visit;
  at: Date | string | null;
  /** Hour and minute only. */
  short?: boolean;
}): JSX.Element {
  const moment = at === null ? null : new Date(at);
  if (moment === null || Number.isNaN(moment.getTime())) return <span>–</span>;
  const { timeZone, words } = visit;
  const text = new Intl.DateTimeFormat(words.code, {
    ...(short
      ? { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }
      : { dateStyle: 'medium', timeStyle: 'medium' }),
    timeZone: timeZone ?? 'UTC',
  }).format(moment);
  return (
    <time
      datetime={moment.toISOString()}
      title={moment.toISOString()}
      data-local={timeZone === undefined ? (short ? 'short' : 'long') : undefined}
    >
      {timeZone === undefined && !short ? `${text} UTC` : text}
    </time>
  );
}

/** How long something took or has lasted, in words. */
export function Span({ visit, ms }: { visit: Visit; ms: number }): JSX.Element {
  return <>{visit.words.duration(Math.max(0, ms) / 1_000)}</>;
}
