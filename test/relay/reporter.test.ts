import { describe, expect, it } from '@jest/globals';
import { Reporter, type DeadLetterNotice } from '../../src/relay/reporter.js';
import type { ClaimedEvent, Settlement } from '../../src/index.js';
import { RecordingLogger } from '../support/logger.js';

const SECRET = 'kim@example.com';

const EVENT: ClaimedEvent = {
  id: '00000000-0000-4000-8000-000000000001',
  leaseToken: '00000000-0000-4000-8000-00000000000a',
  eventType: 'quote.created',
  payload: { email: SECRET },
  metadata: { requestedBy: SECRET },
  retryCount: 0,
  acknowledgedBy: [],
  scheduledAt: new Date(0),
  createdAt: new Date(0),
  unheardSince: null,
  claimedAt: new Date(0),
};

const { id, leaseToken } = EVENT;
const failure = { id, leaseToken, retryCount: 2, lastError: 'A.b: no', acknowledgedBy: [] };

/** Every outcome there is, as the type has them. */
const SETTLEMENTS: { [Outcome in Settlement['outcome']]: Settlement & { outcome: Outcome } } = {
  completed: { id, leaseToken, outcome: 'completed' },
  retry: { ...failure, outcome: 'retry', delayMs: 240_000 },
  failed: { ...failure, outcome: 'failed' },
  unheard: { id, leaseToken, outcome: 'unheard', delayMs: 60_000 },
  released: { id, leaseToken, outcome: 'released' },
};

const LINES: { [Outcome in Settlement['outcome']]: [level: string, message: string] } = {
  completed: ['debug', `quote.created ${id} delivered`],
  retry: ['warn', `quote.created ${id} failed (attempt 2), again in 240 s: A.b: no`],
  failed: ['error', `quote.created ${id} is a dead letter after 2 failed attempt(s): A.b: no`],
  unheard: [
    'warn',
    'nobody in this process listens to quote.created: its events wait (is an @OnEvent method missing or renamed?)',
  ],
  released: ['debug', `quote.created ${id} given back, the relay stops`],
};

describe('what became of an event', () => {
  it.each(Object.values(SETTLEMENTS))('is one line if it is $outcome', (settlement) => {
    const log = new RecordingLogger();
    new Reporter(log, () => {}).settled([{ event: EVENT, settlement }]);
    expect(log.lines.map(({ level, message }) => [level, message])).toEqual([
      LINES[settlement.outcome],
    ]);
  });

  it('is one line if the lease was lost', () => {
    const log = new RecordingLogger();
    new Reporter(log, () => {}).leaseLost(EVENT);
    expect(log.lines).toHaveLength(1);
    expect(log.messages('warn')).toEqual([
      `quote.created ${id}: the lease was lost to another process, this one's outcome is not stored`,
    ]);
  });

  it('is told without payload and metadata', () => {
    const log = new RecordingLogger();
    const notices: DeadLetterNotice[] = [];
    const reporter = new Reporter(log, (notice) => notices.push(notice));
    for (const settlement of Object.values(SETTLEMENTS))
      reporter.settled([{ event: EVENT, settlement }]);
    reporter.leaseLost(EVENT);
    reporter.failed(EVENT, [{ listener: 'A.b', error: new Error('no') }]);
    expect(log.lines).toHaveLength(7);
    expect(JSON.stringify([log.lines, notices])).not.toContain(SECRET);
  });

  it('of a type that nobody listens to is said once for the type, not for each event', () => {
    const log = new RecordingLogger();
    const reporter = new Reporter(log, () => {});
    const unheard = { event: EVENT, settlement: SETTLEMENTS.unheard };
    reporter.settled([unheard, unheard]);
    reporter.settled([unheard]);
    expect(log.lines).toHaveLength(1);
  });

  it('makes no line of what succeeded unless somebody reads debug lines', () => {
    const log = new RecordingLogger();
    const reporter = new Reporter(
      log,
      () => {},
      () => false,
    );
    reporter.settled([{ event: EVENT, settlement: SETTLEMENTS.completed }]);
    expect(log.lines).toEqual([]);
  });
});
