import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { OnEvent } from '@nestjs/event-emitter';
import type { DeadLetterNotice, OutboxModuleOptions } from '../../src/index.js';
import { startApp } from '../support/outbox-app.js';
import { openRestingPlace, RESTING_PLACES, type RestingPlace } from '../support/resting-place.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

describe.each(RESTING_PLACES)('an event that nobody listens to, in %s', (kind) => {
  let place: RestingPlace;
  let outbox: OutboxModuleOptions;

  beforeAll(async () => {
    place = await openRestingPlace(kind);
  });
  beforeEach(async () => {
    outbox = await place.empty();
  });
  afterAll(() => place.close());

  it('goes back to wait, spends no attempt, and is counted', async () => {
    await using app = await startApp({ outbox });
    const [one] = await app.outbox.enqueueMany([
      { eventType: 'order.created', payload: {} },
      { eventType: 'order.created', payload: {} },
      { eventType: 'order.paid', payload: {} },
    ]);
    const id = one?.id ?? '';
    expect(await app.outbox.processPending()).toBe(3);
    const event = await app.event(id);
    expect(event).toMatchObject({ status: 'PENDING', retryCount: 0, lastError: null });
    expect(event.scheduledAt.getTime() - event.createdAt.getTime()).toBeGreaterThanOrEqual(30_000);
    expect(await app.outbox.stats()).toMatchObject({
      due: 0,
      scheduled: 3,
      unheard: { 'order.created': 2, 'order.paid': 1 },
    });
    expect(await app.outbox.processPending()).toBe(0);
  });

  it('is warned about once for each type', async () => {
    await using app = await startApp({ outbox });
    await app.outbox.enqueue('order.created', {});
    await app.outbox.enqueue('order.paid', {});
    for (let pass = 0; pass < 3; pass++) {
      await app.outbox.processPending();
      await place.age(MINUTE_MS);
    }
    await app.outbox.enqueue('order.created', {});
    await app.outbox.processPending();
    const warnings = app.log.messages('warn').filter((line) => line.includes('listens'));
    expect(warnings).toHaveLength(2);
    expect(warnings[0]).toMatch(/^nobody in this process listens to order\.created/);
    expect(warnings[1]).toMatch(/^nobody in this process listens to order\.paid/);
  });

  it('is delivered, with all its attempts, by a process that does listen', async () => {
    class Listener {
      @OnEvent('order.created')
      handle(): void {}
    }
    await using deaf = await startApp({ outbox });
    await using hearing = await startApp({ outbox, providers: [Listener] });
    const { id } = await deaf.outbox.enqueue('order.created', {});
    await deaf.outbox.processPending();
    await place.age(MINUTE_MS);
    await hearing.outbox.processPending();
    expect(await hearing.event(id)).toMatchObject({ status: 'COMPLETED', retryCount: 0 });
    expect((await hearing.outbox.stats()).unheard).toEqual({});
  });

  it('becomes a dead letter when its grace is over, with a reason that says so', async () => {
    const notices: DeadLetterNotice[] = [];
    class Watcher {
      @OnEvent('outbox.dead_letter')
      handle(notice: DeadLetterNotice): void {
        notices.push(notice);
      }
    }
    await using app = await startApp({ outbox, providers: [Watcher] });
    const { id } = await app.outbox.enqueue('order.created', {});
    await app.outbox.processPending();
    const since = await app.event(id);
    await place.age(23 * HOUR_MS);
    await app.outbox.processPending();
    expect(await app.event(id)).toMatchObject({ status: 'PENDING', retryCount: 0 });

    await place.age(HOUR_MS + MINUTE_MS);
    await app.outbox.processPending();
    const dead = await app.event(id);
    expect(dead).toMatchObject({ status: 'FAILED', retryCount: 0 });
    expect(dead.lastError).toMatch(/^nobody has listened to 'order\.created' since \d{4}-/);
    expect(notices).toEqual([
      { id, eventType: 'order.created', retryCount: 0, lastError: dead.lastError },
    ]);
    expect(since.lastError).toBeNull();
  });

  it('counts its grace from the last time that somebody listened', async () => {
    class Failing {
      @OnEvent('order.created')
      handle(): void {
        throw new Error('no');
      }
    }
    await using deaf = await startApp({ outbox });
    await using hearing = await startApp({ outbox, providers: [Failing] });
    const { id } = await deaf.outbox.enqueue('order.created', {});
    await deaf.outbox.processPending();
    await place.age(23 * HOUR_MS);
    await hearing.outbox.processPending();
    await place.age(2 * HOUR_MS);
    await deaf.outbox.processPending();
    expect(await deaf.event(id)).toMatchObject({ status: 'PENDING', retryCount: 1 });
  });

  it('can be given less grace, even none', async () => {
    await using app = await startApp({
      outbox: { ...outbox, relay: { unheardGraceMs: 0 } },
    });
    const { id } = await app.outbox.enqueue('order.created', {});
    await app.eventIn('FAILED', id);
  });
});
