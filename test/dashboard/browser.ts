import { afterAll, beforeAll, describe } from '@jest/globals';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import { migrateOutbox } from '../../src/schema/migrate-outbox.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { opened } from '../support/leaks.js';
import { ADMIN } from './dashboard-app.js';

const CHROMIUM = process.env['CHROMIUM_PATH'] ?? '/usr/bin/chromium';
const ROOT = path.resolve(import.meta.dirname, '../..');

/** Whether there is a browser to test with. Without one the tests are skipped, and say so; in CI they fail. */
export function hasBrowser(): boolean {
  if (existsSync(CHROMIUM)) return true;
  const hint = `no Chromium at ${CHROMIUM}: apt-get install chromium, or set CHROMIUM_PATH`;
  if (process.env['CI']) throw new Error(hint);
  process.stderr.write(`\nSKIPPED: the dashboard was not tested in a browser (${hint})\n\n`);
  return false;
}

/** What a browser test works with: opened before the first, closed after the last. */
export interface BrowserRoom {
  /** With the outbox in it. */
  db: TestDatabase;
  browser: Browser & AsyncDisposable;
}

/** Describes it in a browser, with a database of its own. Without a browser it is skipped. */
export function describeInBrowser(what: string, body: (room: BrowserRoom) => void): void {
  (hasBrowser() ? describe : describe.skip)(what, () => {
    const room = {} as BrowserRoom;

    beforeAll(async () => {
      room.db = await createDatabase();
      await migrateOutbox({ database: room.db.pool });
      room.browser = await launchBrowser();
    });

    afterAll(async () => {
      await room.browser[Symbol.asyncDispose]();
      await room.db.drop();
    });

    body(room);
  });
}

export async function launchBrowser(): Promise<Browser & AsyncDisposable> {
  const browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
  const end = async (): Promise<void> => {
    await browser.close();
    closed();
  };
  const closed = opened({ scope: 'file', describe: () => 'a browser', end });
  return Object.assign(browser, { [Symbol.asyncDispose]: end });
}

/** A page, and everything on it that must not happen. */
export interface WatchedPage {
  readonly page: Page;
  /** Dialogs, violations of the policy, errors of scripts, requests that leave the server. */
  readonly troubles: string[];
}

export interface PageOptions extends BrowserContextOptions {
  readonly url: string;
  /** `name:password` */
  readonly as?: string;
}

export async function openPage(
  browser: Browser,
  { url, as = ADMIN, ...options }: PageOptions,
): Promise<WatchedPage> {
  const [username = '', password = ''] = as.split(':');
  const context = await browser.newContext({
    httpCredentials: { username, password },
    locale: 'en-US',
    timezoneId: 'Asia/Seoul',
    viewport: { width: 1280, height: 900 },
    ...options,
  });
  await context.addInitScript(() => {
    addEventListener('securitypolicyviolation', (event) => {
      // eslint-disable-next-line no-console
      console.error(`CSP ${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
    });
  });
  const page = await context.newPage();
  const troubles: string[] = [];
  page.on('dialog', (dialog) => {
    troubles.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('pageerror', (error) => troubles.push(`error: ${error.message}`));
  page.on('console', (message) => {
    if (message.type() === 'error') troubles.push(`console: ${message.text()}`);
  });
  page.on('request', (request) => {
    const target = request.url();
    if (!target.startsWith(url) && !target.startsWith('data:')) troubles.push(`request: ${target}`);
  });
  return { page, troubles };
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What axe finds wrong with a page, a line each. */
export async function accessibilityProblems(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    const { violations } = await (globalThis as any).axe.run(document, {
      runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
    });
    return violations.flatMap((violation: any) =>
      violation.nodes.map((node: any) => `${violation.id}: ${node.html} ${node.failureSummary}`),
    );
  });
}

/** Those that the documentation shows. */
const SHOWN = new Set([
  'overview',
  'overview-dark',
  'overview-ko',
  'overview-phone',
  'dead-letters',
  'event',
]);

/** Takes a picture into build/screenshots; with UPDATE_SCREENSHOTS=1, what the documentation shows into docs/images. */
export async function takePicture(page: Page, name: string): Promise<void> {
  const update = process.env['UPDATE_SCREENSHOTS'] === '1' && SHOWN.has(name);
  const folder = path.join(ROOT, update ? 'docs/images' : 'build/screenshots');
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: path.join(folder, `dashboard-${name}.png`) });
}
