import { describe, expect, it } from '@jest/globals';
import { InMemoryOutboxStore } from '../../src/testing.js';
import { makeDeadLetters, startDashboard } from './dashboard-app.js';

/** The fields of the form on a page. */
function hiddenFields(html: string): Record<string, string> {
  const fields = [...html.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)"/g)];
  return Object.fromEntries(fields.map(([, name = '', value = '']) => [name, value]));
}

describe('redrive and discard', () => {
  it('take all that matched when it was asked, and nothing that came later', async () => {
    await using app = await startDashboard({ outbox: { store: new InMemoryOutboxStore() } });
    const kinds = [{ eventType: 'a' }, { eventType: 'a' }, { eventType: 'b' }];
    const [gone = ''] = await makeDeadLetters(app, kinds);
    const page = await app.get('/outbox/dead-letters/confirm?action=discard&all=yes&type=a');
    const html = await page.text();
    expect(html).toContain('Discard 2 dead letters?');
    // Somebody else takes one of the two, and another fails: it must not take its place.
    await app.deadLetters.discard(gone);
    const [late] = await makeDeadLetters(app, [{ eventType: 'a' }]);

    const response = await app.post('/outbox/dead-letters/run', hiddenFields(html));
    expect(response.status).toBe(303);
    expect(response.headers.get('location')).toBe('../../outbox/dead-letters?discard=1');
    const { items } = await app.deadLetters.list();
    expect(items.map(({ id, eventType }) => [id === late, eventType])).toEqual([
      [true, 'a'],
      [false, 'b'],
    ]);
  });

  it('refuse what says nothing of which are meant', async () => {
    await using app = await startDashboard({ outbox: { store: new InMemoryOutboxStore() } });
    await makeDeadLetters(app, [{ eventType: 'a' }]);
    const forms: Record<string, string>[] = [
      { action: 'discard' },
      { action: 'discard', total: '5' },
      { action: 'discard', type: 'a' },
      { action: 'discard', id: '' },
      { action: 'delete', id: crypto.randomUUID() },
      { action: 'discard', id: 'not-an-id' },
      { action: 'redrive', id: crypto.randomUUID(), perSecond: '0' },
      { action: 'discard', failedBefore: 'yesterday' },
    ];
    for (const form of forms) {
      const response = await app.post('/outbox/dead-letters/run', form);
      expect([form, response.status < 400]).toEqual([form, false]);
    }
    const nothing = await app.get('/outbox/dead-letters/confirm?action=discard');
    expect(await nothing.text()).toContain('There is nothing left to do');
    expect(await app.deadLetters.count()).toBe(1);
  });

  it('tell a script how far they are', async () => {
    await using app = await startDashboard({ outbox: { store: new InMemoryOutboxStore() } });
    const [id = ''] = await makeDeadLetters(app, [{ eventType: 'a' }]);
    const headers = { Accept: 'application/json' };
    const response = await app.post(
      '/outbox/dead-letters/run',
      { action: 'redrive', id },
      { headers },
    );
    const after = `../../outbox/events/${id}`;
    expect(await response.json()).toEqual({ done: 1, total: 1, finished: true, after });
  });
});

describe('the list of dead letters', () => {
  it('finds by id, by type and by text of the error, whatever its case', async () => {
    await using app = await startDashboard({ outbox: { store: new InMemoryOutboxStore() } });
    const [first = ''] = await makeDeadLetters(app, [
      { eventType: 'order.paid', error: 'Gateway Timeout' },
      { eventType: 'invoice.issued', error: 'no such account' },
    ]);
    const found = async (query: string): Promise<string[]> => {
      const html = await (await app.get(`/outbox/dead-letters?${query}`)).text();
      return ['order.paid', 'invoice.issued'].filter((type) => html.includes(`<bdi>${type}</bdi>`));
    };
    expect(await found('')).toEqual(['order.paid', 'invoice.issued']);
    expect(await found(`q=${first}`)).toEqual(['order.paid']);
    expect(await found('q=gateway+timeOUT')).toEqual(['order.paid']);
    expect(await found('q=INVOICE')).toEqual(['invoice.issued']);
    expect(await found('type=invoice.issued')).toEqual(['invoice.issued']);
    expect(await found('q=gateway&type=invoice.issued')).toEqual([]);
    expect(await found('within=hour')).toEqual(['order.paid', 'invoice.issued']);
  });

  it('pages through all of them once, while others come and go', async () => {
    await using app = await startDashboard({ outbox: { store: new InMemoryOutboxStore() } });
    const ids = await makeDeadLetters(
      app,
      Array.from({ length: 120 }, () => ({ eventType: 'a' })),
    );
    const seen: string[] = [];
    let page: string | undefined = `${app.url}/outbox/dead-letters`;
    while (page !== undefined) {
      const html: string = await (await app.get(page)).text();
      seen.push(...[...html.matchAll(/name="id" value="([^"]+)"/g)].map(([, id = '']) => id));
      const next: string | undefined = /href="([^"]+)" rel="next"/.exec(html)?.[1];
      page = next && new URL(next.replaceAll('&amp;', '&'), page).href;
      await makeDeadLetters(app, [{ eventType: 'new' }]);
      if (seen.length === 50) await app.deadLetters.discard(seen.slice(0, 30));
    }
    expect(seen).toEqual(ids.toReversed());
  });
});
