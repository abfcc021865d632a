import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import type { Browser } from 'playwright-core';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { migrateOutbox } from '../../src/schema/migrate-outbox.js';
import {
  accessibilityProblems,
  hasBrowser,
  launchBrowser,
  openPage,
  takePicture,
} from './browser.js';
import { fillAsAfterABusyDay } from './busy-database.js';
import { CREDENTIALS, startDashboard, type DashboardApp } from './dashboard-app.js';

@Injectable()
class NotificationListener {
  @OnEvent('quote_request.created')
  notify(): void {}
}

@Injectable()
class AuditListener {
  @OnEvent('quote_request.created')
  record(): void {}
}

const PAGES = {
  overview: '/outbox',
  'overview of a day': '/outbox?span=day&type=order.paid',
  'dead letters': '/outbox/dead-letters',
  'dead letters that match': '/outbox/dead-letters?q=gateway&within=day',
  'dead letters without any': '/outbox/dead-letters?q=nowhere',
  waiting: '/outbox/events?state=scheduled',
  'in flight': '/outbox/events?state=processing',
  processes: '/outbox/processes',
  gates: '/outbox/gates',
  'a question': '/outbox/dead-letters/confirm?action=discard&all=yes',
  'nothing there': '/outbox/events/none',
};

(hasBrowser() ? describe : describe.skip)('the pages in a browser', () => {
  let db: TestDatabase;
  let browser: Browser & AsyncDisposable;
  let pages: [string, string][];

  const start = (): Promise<DashboardApp> =>
    startDashboard({
      outbox: { pool: db.pool },
      providers: [NotificationListener, AuditListener],
      dashboard: { credentials: CREDENTIALS, mask: ['phone'], title: 'Orders outbox' },
    });

  beforeAll(async () => {
    db = await createDatabase();
    await migrateOutbox({ database: db.pool });
    await fillAsAfterABusyDay(db);
    browser = await launchBrowser();
    const [dead] = await db.query<{ id: string }>(
      `SELECT id FROM outbox_events WHERE status = 'FAILED' AND acknowledged_by <> '{}' ORDER BY processed_at DESC LIMIT 1`,
    );
    pages = [...Object.entries(PAGES), ['an event', `/outbox/events/${dead?.id}`]];
  });

  afterAll(async () => {
    await browser[Symbol.asyncDispose]();
    await db.drop();
  });

  it.each(['light', 'dark'] as const)(
    'have no flaw that axe knows of, in %s',
    async (colorScheme) => {
      await using app = await start();
      const { page, troubles } = await openPage(browser, { url: app.url, colorScheme });
      for (const [name, path] of pages) {
        await page.goto(app.url + path, { waitUntil: 'networkidle' });
        for (const details of await page.locator('details').all()) await details.click();
        expect([name, await accessibilityProblems(page)]).toEqual([name, []]);
      }
      const unexpected = troubles.filter((trouble) => !trouble.includes('404'));
      expect(unexpected).toEqual([]);
      await page.context().close();
    },
    120_000,
  );

  it.each(['en-US', 'ko-KR'])(
    'fit on a phone without scrolling sideways, in %s',
    async (locale) => {
      await using app = await start();
      const { page } = await openPage(browser, {
        url: app.url,
        locale,
        viewport: { width: 375, height: 740 },
        isMobile: true,
        hasTouch: true,
      });
      for (const [name, path] of pages) {
        await page.goto(app.url + path, { waitUntil: 'networkidle' });
        const width = await page.evaluate(() => document.documentElement.scrollWidth);
        expect([name, width]).toEqual([name, 375]);
      }
      await page.context().close();
    },
  );

  it('have their picture taken', async () => {
    await using app = await start();
    const detail = pages.at(-1)?.[1] ?? '';
    const shots = [
      ['overview', '/outbox', {}],
      ['overview-dark', '/outbox?span=day', { colorScheme: 'dark' }],
      ['overview-ko', '/outbox', { locale: 'ko-KR' }],
      ['overview-phone', '/outbox', { viewport: { width: 375, height: 740 } }],
      ['dead-letters', '/outbox/dead-letters', { viewport: { width: 1100, height: 560 } }],
      ['dead-letters-phone', '/outbox/dead-letters', { viewport: { width: 375, height: 740 } }],
      ['event', detail, { viewport: { width: 1100, height: 900 } }],
      ['confirm', PAGES['a question'], { viewport: { width: 1280, height: 500 } }],
      ['gates', PAGES.gates, { viewport: { width: 1280, height: 500 } }],
      ['waiting', PAGES.waiting, { viewport: { width: 1280, height: 600 } }],
    ] as const;
    for (const [name, path, options] of shots) {
      const { page } = await openPage(browser, { url: app.url, ...options });
      await page.goto(app.url + path, { waitUntil: 'networkidle' });
      await takePicture(page, name);
      await page.context().close();
    }
  });
});
