import { expect, it } from '@jest/globals';
import { describeInBrowser, openPage } from './browser.js';
import { makeDeadLetters, startDashboard, type DashboardApp } from './dashboard-app.js';

/** Each is tried in every field there is. What it runs, if it runs, is a dialog. */
const HOSTILE = [
  `<img src=x onerror=alert(1)>`,
  `</script><script>alert(1)</script>`,
  `"><svg onload=alert(1)>`,
  `' onfocus=alert(1) autofocus x='`,
  `javascript:alert(1)`,
  `</title><script>alert(1)</script>`,
  `</textarea></select></pre><iframe srcdoc="<script>alert(1)</script>">`,
  `&lt;img src=x onerror=alert(1)&gt; &amp;amp; &#x3c;`,
  `{{constructor.constructor('alert(1)')()}} \${alert(1)}`,
  `../../../etc?x=1#fragment&y="'<>`,
  `\u202Egnp.live\u202C \u2066hidden\u2069 \u200B\uFEFF`,
  `a\u0001b\u001Bc\u007Fd`,
  `"`,
  `'`,
  `<!--`,
  `]]>`,
  'W'.repeat(240),
];

describeInBrowser('hostile text in every field', (room) => {
  const start = (): Promise<DashboardApp> =>
    startDashboard({
      outbox: { pool: room.db.pool },
      dashboard: {
        credentials: [{ username: 'admin', password: 'a long enough secret', rights: 'act' }],
        title: HOSTILE[5] ?? '',
      },
    });

  it('is shown as text: no dialog, no element, nothing that the policy had to stop', async () => {
    await using app = await start();
    const ids = await makeDeadLetters(
      app,
      HOSTILE.map((text) => ({
        eventType: text,
        payload: { [text]: text, nested: [{ [text]: [text] }] },
        metadata: { [text]: text },
        error: text,
      })),
    );
    await app.outbox.enqueueMany(
      HOSTILE.map((eventType) => ({ eventType, payload: {}, delayMs: 3_600_000 })),
    );
    await app.store.activity?.report({
      relayId: crypto.randomUUID(),
      name: HOSTILE[0] ?? '',
      version: HOSTILE[1] ?? '',
      listeners: HOSTILE.flatMap((name) => HOSTILE.map((event) => ({ name, event }))).slice(0, 60),
      number: 1,
      stopped: false,
      activity: HOSTILE.map((eventType) => ({ eventType, delivered: 1, retried: 1, failed: 1 })),
    });
    for (const [i, key] of HOSTILE.entries()) {
      await room.db.query(
        `INSERT INTO outbox_sentinels (key, version, failures, same_failures, last_error, last_error_kind, failed_at, closed_at, closed_until, closings)
           VALUES ($1, $2, 3, 3, $1, 'unknown', now(), now(), now() + interval '1 hour', 1)`,
        [key, String(i)],
      );
    }

    const { page, troubles } = await openPage(room.browser, { url: app.url });
    const q = HOSTILE.map(encodeURIComponent);
    const paths = [
      '/outbox',
      '/outbox/dead-letters',
      '/outbox/events?state=scheduled',
      '/outbox/processes',
      '/outbox/gates',
      ...ids.map((id) => `/outbox/events/${id}`),
      ...q.flatMap((text) => [
        `/outbox?type=${text}&span=${text}`,
        `/outbox/dead-letters?q=${text}&type=${text}&within=${text}&lang=${text}`,
        `/outbox/events?state=${text}&type=${text}`,
        `/outbox/dead-letters/confirm?action=redrive&all=yes&q=${text}`,
      ]),
      ...q.filter((text) => !text.includes('%2F')).map((text) => `/outbox/events/${text}`),
      ...q.map((text) => `/outbox/dead-letters?after=${text}`),
      ...q.map((text) => `/outbox/dead-letters/confirm?action=${text}&id=${text}`),
    ];
    for (const path of paths) {
      await page.goto(app.url + path);
      const foreign = await page.evaluate(() => ({
        elements: document.querySelectorAll(
          'img, iframe, svg[onload], script:not([src]), [onerror], [onfocus], [autofocus], textarea',
        ).length,
        links: [...document.querySelectorAll('a, form')].filter((element) => {
          const target = element.getAttribute('href') ?? element.getAttribute('action') ?? '';
          return !/^(\.|#|\?|$)/.test(target);
        }).length,
        overrides: /[\u202e\u2066]/.test(document.title + document.body.innerText),
      }));
      expect([path, foreign]).toEqual([path, { elements: 0, links: 0, overrides: false }]);
    }
    // Refusals are meant; anything else is not.
    expect(troubles.filter((trouble) => !/status of 40[04]/.test(trouble))).toEqual([]);

    // It is there, as it was written.
    await page.goto(`${app.url}/outbox/events/${ids[0]}`);
    expect(await page.title()).toContain(HOSTILE[0]);
    expect(await page.locator('.event-type').innerText()).toBe(HOSTILE[0]);
    await page.goto(`${app.url}/outbox/events/${ids[10]}`);
    expect(await page.locator('.event-type').innerText()).toContain('\\u202egnp.live\\u202c');
    await page.context().close();
  }, 120_000);

  it('does not widen a page on a phone', async () => {
    await using app = await start();
    const { page } = await openPage(room.browser, {
      url: app.url,
      viewport: { width: 375, height: 740 },
      isMobile: true,
    });
    for (const path of ['', '/dead-letters', '/events?state=scheduled', '/processes', '/gates']) {
      await page.goto(`${app.url}/outbox${path}`);
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      expect([path, width]).toEqual([path, 375]);
    }
    await page.context().close();
  });

  it('is data, not HTML, in the JSON of the charts', async () => {
    await using app = await start();
    for (const text of HOSTILE) {
      const response = await app.get(`/outbox/activity.json?type=${encodeURIComponent(text)}`);
      expect(response.status).toBe(200);
      expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect(response.headers.get('x-content-type-options')).toBe('nosniff');
      expect(Object.keys((await response.json()) as object)).toEqual([
        'at',
        'delivered',
        'retried',
        'failed',
      ]);
    }
  });
});
