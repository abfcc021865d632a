import { expect, it } from '@jest/globals';
import { describeInBrowser, openPage } from './browser.js';
import { fillAsAfterABusyDay } from './busy-database.js';
import { makeDeadLetters, startDashboard } from './dashboard-app.js';

describeInBrowser('an open page', (room) => {
  it('looks again by itself, says when the server is gone, and can be told to stop', async () => {
    await using app = await startDashboard({ outbox: { pool: room.db.pool } });
    const { page } = await openPage(room.browser, { url: app.url });
    await page.clock.install();
    await page.goto(`${app.url}/outbox`);
    await page.getByRole('link', { name: /^Dead letters 0/ }).waitFor();
    await makeDeadLetters(app, [{ eventType: 'a.b' }]);
    await page.getByRole('link', { name: /^Dead letters 1/ }).waitFor({ timeout: 10_000 });

    await page.context().setOffline(true);
    await page.getByText('The server does not answer').waitFor({ timeout: 10_000 });
    await page.context().setOffline(false);
    await page.getByText('The server does not answer').waitFor({ state: 'hidden' });
    await page.getByRole('button', { name: 'Pause updates' }).click();
    const requests: string[] = [];
    page.on('request', (request) => requests.push(request.url()));
    await makeDeadLetters(app, [{ eventType: 'a.b' }]);
    await page.clock.runFor(60_000);
    expect(requests).toEqual([]);
    await page.getByRole('button', { name: 'Resume updates' }).click();
    await page.getByRole('link', { name: /^Dead letters 2/ }).waitFor({ timeout: 10_000 });
    await page.context().close();
  });

  it('draws charts of the whole and of one type, with the same as a table, in the time of the viewer', async () => {
    await using app = await startDashboard({ outbox: { pool: room.db.pool } });
    await room.db.query(`TRUNCATE outbox_events`);
    await fillAsAfterABusyDay(room.db);
    const { page, troubles } = await openPage(room.browser, { url: app.url });
    await page.goto(`${app.url}/outbox`);
    await page.locator('.chart canvas').nth(1).waitFor();
    const total = await page.getByRole('row', { name: /^order\.paid/ }).innerText();
    expect(total).toMatch(/\d,\d{3}/);
    await page.getByText('The same as a table').click();
    const row = page.locator('details tbody tr').first();
    const at = await row.locator('time').getAttribute('datetime');
    const local = new Intl.DateTimeFormat('en', {
      timeZone: 'Asia/Seoul',
      hour: '2-digit',
      minute: '2-digit',
      hourCycle: 'h23',
    });
    expect(await row.locator('time').innerText()).toBe(local.format(new Date(at ?? '')));

    await page.getByRole('link', { name: 'order.paid' }).click();
    await page.locator('.chart canvas').first().waitFor();
    await page.getByRole('link', { name: 'Last day' }).click();
    await page.locator('.chart canvas').first().waitFor();
    expect(page.url()).toContain('span=day&type=order.paid');
    const series = (await (
      await app.get('/outbox/activity.json?span=day&type=order.paid')
    ).json()) as { at: number[]; delivered: number[] };
    expect(series.at).toHaveLength(144);
    expect(Math.min(...series.delivered)).toBeGreaterThan(0);
    expect(troubles).toEqual([]);
    await page.context().close();
  });

  it('opens a closed gate again', async () => {
    await using app = await startDashboard({ outbox: { pool: room.db.pool } });
    const { page } = await openPage(room.browser, { url: app.url });
    await page.goto(`${app.url}/outbox/gates`);
    const gate = page.getByRole('row', { name: /records:tenant-9/ });
    await gate.getByText('closed until').waitFor();
    await gate.getByRole('button', { name: 'Reopen' }).click();
    await page.getByRole('status').getByText('The gate is open again.').waitFor();
    expect(await page.getByText('closed until').count()).toBe(0);
    await page.context().close();
  });
});
