import { describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type { ActivityStore, RelayReport } from '../../../src/store/activity-store.js';
import type { Subject } from './subject.js';

const HOUR = 3_600_000;

export function describeActivity(subject: Subject): void {
  const store = (): ActivityStore => {
    const { activity } = subject.store;
    if (activity === undefined) throw new Error('the store keeps no reports');
    return activity;
  };

  function report(changes: Partial<RelayReport> = {}): RelayReport {
    return {
      relayId: randomUUID(),
      name: 'host:1',
      version: '1.2.3',
      listeners: [],
      number: 1,
      stopped: false,
      activity: [],
      ...changes,
    };
  }

  /** Of these relays only: others' reports are kept for a day. */
  async function relays(...ids: string[]) {
    return (await store().relays()).filter(({ relayId }) => ids.includes(relayId));
  }

  describe('the reports of relays', () => {
    it('tell who relays, since when, in which version, and who listens there', async () => {
      const listeners = [{ name: 'Ünï."코드"', event: 'quote.*' }];
      const first = report({ listeners });
      await store().report(first);
      await store().report({ ...first, number: 2 });
      const [relay] = await relays(first.relayId);
      expect(relay).toEqual({
        relayId: first.relayId,
        name: 'host:1',
        version: '1.2.3',
        listeners,
        startedAt: expect.any(Date),
        seenAt: expect.any(Date),
        stoppedAt: null,
        silentMs: expect.any(Number),
      });
      expect(relay!.silentMs).toBeGreaterThanOrEqual(0);
      expect(relay!.silentMs).toBeLessThan(10_000);
    });

    it('say when one has ended in good order', async () => {
      const first = report();
      await store().report(first);
      await store().report({ ...first, number: 2, stopped: true });
      expect(await relays(first.relayId)).toMatchObject([{ stoppedAt: expect.any(Date) }]);
    });

    it('list the one heard last first', async () => {
      const [a, b] = [report(), report()];
      await store().report(a);
      await store().report(b);
      await store().report({ ...a, number: 2 });
      const ids = (await relays(a.relayId, b.relayId)).map(({ relayId }) => relayId);
      expect(ids).toEqual([a.relayId, b.relayId]);
    });

    it('add up what was settled, by event type, over relays and reports', async () => {
      const [x, y] = [`x.${randomUUID()}`, `y.${randomUUID()}`];
      const counts = (eventType: string) => ({ eventType, delivered: 3, retried: 2, failed: 1 });
      const first = report({ activity: [counts(x), counts(y)] });
      await store().report(first);
      await store().report({ ...first, number: 2, activity: [counts(x)] });
      await store().report(report({ activity: [counts(x)] }));
      const request = { sinceMs: HOUR, stepMs: HOUR };
      const ofX = await store().activity({ ...request, eventType: x });
      // Two steps, if the hour struck in between.
      const sum = (key: 'delivered' | 'retried' | 'failed') =>
        ofX.reduce((total, step) => total + step[key], 0);
      expect([sum('delivered'), sum('retried'), sum('failed')]).toEqual([9, 6, 3]);
      expect(ofX.every(({ eventType }) => eventType === x)).toBe(true);
      const all = await store().activity(request);
      expect(all.filter(({ eventType }) => eventType === y)).toMatchObject([counts(y)]);
    });

    it('count a report that is sent again once', async () => {
      const eventType = `z.${randomUUID()}`;
      const sent = report({ activity: [{ eventType, delivered: 1, retried: 0, failed: 0 }] });
      await store().report(sent);
      await store().report(sent);
      const steps = await store().activity({ sinceMs: HOUR, stepMs: HOUR, eventType });
      expect(steps).toMatchObject([{ delivered: 1 }]);
    });

    it('put each step at its beginning, in whole minutes', async () => {
      const eventType = `m.${randomUUID()}`;
      await store().report(
        report({ activity: [{ eventType, delivered: 1, retried: 0, failed: 0 }] }),
      );
      const now = await subject.current.now();
      const [minute] = await store().activity({ sinceMs: HOUR, stepMs: 60_000, eventType });
      expect(minute!.at.getTime() % 60_000).toBe(0);
      expect(now - minute!.at.getTime()).toBeLessThan(120_000);
      const [quarter] = await store().activity({ sinceMs: HOUR, stepMs: HOUR / 4, eventType });
      expect(quarter!.at.getTime() % (HOUR / 4)).toBe(0);
    });
  });
}
