import { expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import { NonRetryableError, type OutboxStore } from '../../src/index.js';
import { InMemoryOutboxStore } from '../../src/testing.js';
import { until } from '../support/until.js';
import { describeInBrowser, openPage } from './browser.js';
import { makeDeadLetters, READER, startDashboard } from './dashboard-app.js';

let gatewayWorks = false;
const notified: string[] = [];

@Injectable()
class NotificationListener {
  @OnEvent('quote_request.created')
  notify(event: { quoteRequestId: string }): void {
    if (!gatewayWorks) throw new NonRetryableError('the gateway is closed on Sundays');
    notified.push(event.quoteRequestId);
  }
}

@Injectable()
class AuditListener {
  @OnEvent('quote_request.created')
  record(): void {}
}

describeInBrowser('in a browser', (room) => {
  it('a dead letter is found, opened, redriven, and seen delivered', async () => {
    gatewayWorks = false;
    await using app = await startDashboard({
      outbox: { pool: room.db.pool, relay: {} },
      providers: [NotificationListener, AuditListener],
    });
    const { id } = await app.outbox.enqueue('quote_request.created', { quoteRequestId: 'q-1' });
    await until(async () => (await app.store.find(id))?.status === 'FAILED', {
      what: 'it is dead',
    });

    const { page, troubles } = await openPage(room.browser, { url: app.url });
    await page.goto(`${app.url}/outbox`);
    await page.getByRole('link', { name: /^Dead letters 1/ }).click();
    await page.getByRole('searchbox').fill('ON SUNDAYS');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByRole('link', { name: 'quote_request.created' }).click();
    expect(await page.title()).toBe('quote_request.created · Outbox');
    const listeners = page.getByRole('listitem');
    await listeners
      .filter({ hasText: 'NotificationListener.notify' })
      .getByText('failed')
      .waitFor();
    await listeners.filter({ hasText: 'AuditListener.record' }).getByText('succeeded').waitFor();
    await page.getByText('the gateway is closed on Sundays').waitFor();
    await page.getByText('"quoteRequestId": "q-1"').waitFor();

    gatewayWorks = true;
    await page.getByRole('button', { name: 'Redrive' }).click();
    await page.locator('[data-status="COMPLETED"]').getByText('delivered').waitFor();
    expect(notified).toEqual(['q-1']);
    await page.getByText('Previous lives').waitFor();
    expect(troubles).toEqual([]);
    await page.context().close();
  });

  it('all that match are redriven in steps, after a question, with the progress told', async () => {
    await using app = await startDashboard({ outbox: { store: new InMemoryOutboxStore() } });
    await makeManyDeadLetters(app.store, 450, 'bulk.failed');
    await makeDeadLetters(app, [{ eventType: 'another.kind' }]);

    const { page, troubles } = await openPage(room.browser, { url: app.url });
    await page.goto(`${app.url}/outbox/dead-letters?type=bulk.failed`);
    await page.getByText('450 dead letters').waitFor();
    await page
      .locator('form', { hasText: 'With all 450' })
      .getByRole('button', { name: 'Redrive' })
      .click();
    await page.getByRole('heading', { name: 'Redrive 450 dead letters?' }).waitFor();
    expect(await app.deadLetters.count()).toBe(451);

    // The second step fails: it says so, and goes on from there.
    let steps = 0;
    await page.route('**/dead-letters/run', async (route) => {
      steps++;
      await (steps === 2 ? route.fulfill({ status: 502, body: 'bad gateway' }) : route.continue());
    });
    await page.getByLabel('Events per second').fill('50');
    await page.getByRole('button', { name: 'Redrive' }).click();
    await page.getByRole('alert').getByText('HTTP 502').waitFor();
    await page.getByText('200 of 450').waitFor();
    expect(await app.deadLetters.count()).toBe(251);
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByRole('status').getByText('450 dead letters redriven.').waitFor();
    expect(await app.deadLetters.count({ eventType: 'bulk.failed' })).toBe(0);
    expect(await app.deadLetters.count()).toBe(1);
    // 50 a second, over all steps.
    const { items } = await app.store.list({ state: 'scheduled', limit: 500 });
    const last = items.at(-1)?.scheduledAt.getTime() ?? 0;
    expect((last - Date.now()) / 1_000).toBeGreaterThan(7);
    expect(troubles.filter((trouble) => !trouble.includes('502'))).toEqual([]);
    await page.context().close();
  });

  it('a selection is discarded, after a question', async () => {
    await using app = await startDashboard({ outbox: { store: new InMemoryOutboxStore() } });
    const [first = '', second = '', third = ''] = await makeDeadLetters(
      app,
      ['a', 'b', 'c'].map((eventType) => ({ eventType })),
    );
    const { page } = await openPage(room.browser, { url: app.url });
    await page.goto(`${app.url}/outbox/dead-letters`);
    await page.getByLabel('Select all on this page').check();
    await page.getByText('3 selected').waitFor();
    await page.getByLabel(`Select ${second}`).uncheck();
    await page.getByText('2 selected').waitFor();
    await page.locator('form[data-selection]').getByRole('button', { name: 'Discard' }).click();
    await page.getByRole('heading', { name: 'Discard 2 dead letters?' }).waitFor();
    await page.getByRole('button', { name: 'Discard' }).click();
    await page.getByRole('status').getByText('2 dead letters discarded.').waitFor();
    expect([await app.store.find(first), await app.store.find(third)]).toEqual([null, null]);
    expect(await app.store.find(second)).not.toBeNull();
    await page.context().close();
  });

  it('everything works by keyboard alone, without JavaScript too', async () => {
    await using app = await startDashboard({ outbox: { store: new InMemoryOutboxStore() } });
    await makeManyDeadLetters(app.store, 250, 'bulk.failed');
    const { page } = await openPage(room.browser, { url: app.url, javaScriptEnabled: false });
    await page.goto(`${app.url}/outbox/dead-letters`);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    expect(page.url()).toMatch(/#content$/);
    const allOf = page.locator('form', { hasText: 'With all 250' });
    await allOf.getByRole('button', { name: 'Discard' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Discard' }).focus();
    await page.keyboard.press('Enter');
    await page.getByText('200 of 250').waitFor();
    await page.getByRole('button', { name: 'Continue' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('status').getByText('250 dead letters discarded.').waitFor();
    expect(await app.deadLetters.count()).toBe(0);
    await page.context().close();
  });

  it('a reader sees no buttons, and a stranger nothing', async () => {
    await using app = await startDashboard({ outbox: { store: new InMemoryOutboxStore() } });
    await makeDeadLetters(app, [{ eventType: 'a.b' }]);
    const { page } = await openPage(room.browser, { url: app.url, as: READER });
    await page.goto(`${app.url}/outbox/dead-letters`);
    await page.getByText('read only').waitFor();
    await page.getByRole('link', { name: 'a.b' }).click();
    await page.getByText('it failed').waitFor();
    expect(await page.getByRole('button', { name: /redrive|discard/i }).count()).toBe(0);
    await page.context().close();

    const stranger = await openPage(room.browser, { url: app.url, as: 'admin:guessed' });
    const response = await stranger.page.goto(`${app.url}/outbox`);
    expect(response?.status()).toBe(401);
    expect(await stranger.page.locator('body').innerText()).toBe('Please sign in');
    await stranger.page.context().close();
  });

  it('a form on another site cannot redrive', async () => {
    await using app = await startDashboard({ outbox: { store: new InMemoryOutboxStore() } });
    const [id = ''] = await makeDeadLetters(app, [{ eventType: 'a.b' }]);
    await using evil = await startDashboard({ outbox: { store: new InMemoryOutboxStore() } });
    const { page } = await openPage(room.browser, { url: app.url });
    // Signed in, and then on a page of somebody else: another port is another origin, but the same site.
    await page.goto(`${app.url}/outbox`);
    const { host } = new URL(evil.url);
    for (const elsewhere of [
      `http://${host}/nothing`,
      `http://localhost:${new URL(evil.url).port}/nothing`,
    ]) {
      await page.goto(elsewhere);
      const [response] = await Promise.all([
        page.waitForResponse(`${app.url}/outbox/dead-letters/run`),
        page.evaluate(
          ([action, event]) => {
            document.body.innerHTML = `<form method="post" action="${action}"><input name="action" value="discard"><input name="id" value="${event}"></form>`;
            document.forms[0]?.submit();
          },
          [`${app.url}/outbox/dead-letters/run`, id],
        ),
      ]);
      expect(response.status()).toBe(403);
      await page.waitForURL(`${app.url}/**`);
      await page.waitForLoadState();
    }
    expect(await app.deadLetters.count()).toBe(1);
    await page.context().close();
  });
});

async function makeManyDeadLetters(
  store: OutboxStore,
  count: number,
  eventType: string,
): Promise<void> {
  await store.enqueue(
    Array.from({ length: count }, () => ({
      id: crypto.randomUUID(),
      eventType,
      payload: {},
      metadata: {},
    })),
  );
  const claimed = await store.claim({ limit: count, leaseMs: 60_000 });
  await store.settle(
    claimed.map(({ id, leaseToken }) => ({
      id,
      leaseToken,
      outcome: 'failed' as const,
      retryCount: 5,
      lastError: 'it failed',
      acknowledgedBy: [],
    })),
  );
}
