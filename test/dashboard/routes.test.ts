import { describe, expect, it } from '@jest/globals';
import { InMemoryOutboxStore } from '../../src/testing.js';
import { makeDeadLetters, READER, startDashboard, type Server } from './dashboard-app.js';

const PAGES = [
  '/outbox',
  '/outbox?span=day&type=a.b',
  '/outbox/dead-letters',
  '/outbox/events?state=scheduled',
  '/outbox/processes',
  '/outbox/gates',
];

describe.each<Server>(['express', 'fastify'])('the dashboard on %s', (server) => {
  it('answers every page with a strict policy, and keeps none of them', async () => {
    await using app = await startDashboard({
      server,
      outbox: { store: new InMemoryOutboxStore() },
    });
    const [id] = await makeDeadLetters(app, [{ eventType: 'a.b' }]);
    for (const page of [
      ...PAGES,
      `/outbox/events/${id}`,
      `/outbox/dead-letters/confirm?action=discard&all=yes`,
    ]) {
      const response = await app.get(page);
      expect([page, response.status]).toEqual([page, 200]);
      expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
      expect(response.headers.get('cache-control')).toBe('no-store');
      expect(response.headers.get('x-content-type-options')).toBe('nosniff');
      const policy = response.headers.get('content-security-policy');
      expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self';/);
      expect(policy).not.toMatch(/unsafe|\*/);
      const html = await response.text();
      expect(html).toMatch(/^<!doctype html><html lang="en">/);
      expect(html).not.toMatch(/<script(?![^>]* src=)|<style| style=| on\w+=/);
    }
  });

  it('sends strangers away from everything, and says how to come in', async () => {
    await using app = await startDashboard({
      server,
      outbox: { store: new InMemoryOutboxStore() },
    });
    const wrong = [
      null,
      'admin:wrong',
      'nobody:a long enough secret',
      'admin:',
      ':',
      'reader:a long enough secret',
    ];
    for (const as of wrong) {
      for (const page of [...PAGES, '/outbox/activity.json', '/outbox/assets/dashboard.css']) {
        const response = await app.get(page, { as });
        expect(response.status).toBe(401);
        expect(response.headers.get('www-authenticate')).toMatch(/^Basic realm=/);
        expect(await response.text()).not.toMatch(/Dead letters|Overview/);
      }
      const response = await app.post(
        '/outbox/dead-letters/run',
        { action: 'discard', id: 'x' },
        { as },
      );
      expect(response.status).toBe(401);
    }
  });

  it('lets a reader look and change nothing', async () => {
    await using app = await startDashboard({
      server,
      outbox: { store: new InMemoryOutboxStore() },
    });
    const [id = ''] = await makeDeadLetters(app, [{ eventType: 'a.b' }]);
    for (const page of ['/outbox/dead-letters', `/outbox/events/${id}`]) {
      const html = await (await app.get(page, { as: READER })).text();
      expect(html).toContain('a.b');
      expect(html).not.toMatch(/Redrive|Discard|checkbox/);
    }
    for (const action of ['redrive', 'discard']) {
      const response = await app.post('/outbox/dead-letters/run', { action, id }, { as: READER });
      expect(response.status).toBe(403);
    }
    const page = await app.get(`/outbox/dead-letters/confirm?action=discard&id=${id}`, {
      as: READER,
    });
    expect(page.status).toBe(403);
    const reopen = await app.post('/outbox/gates/reopen', { key: 'a' }, { as: READER });
    expect(reopen.status).toBe(403);
    expect(await app.deadLetters.count()).toBe(1);
  });

  it('changes nothing by GET', async () => {
    await using app = await startDashboard({
      server,
      outbox: { store: new InMemoryOutboxStore() },
    });
    const [id = ''] = await makeDeadLetters(app, [{ eventType: 'a.b' }]);
    expect((await app.get(`/outbox/dead-letters/run?action=discard&id=${id}`)).status).toBe(404);
    await app.get(`/outbox/dead-letters/confirm?action=discard&id=${id}`);
    await app.get(`/outbox/dead-letters/confirm?action=redrive&all=yes`);
    expect(await app.deadLetters.count()).toBe(1);
  });

  it('refuses a change that comes from another origin, or does not say from where', async () => {
    await using app = await startDashboard({
      server,
      outbox: { store: new InMemoryOutboxStore() },
    });
    const [id = ''] = await makeDeadLetters(app, [{ eventType: 'a.b' }]);
    const foreign: Record<string, string>[] = [
      { 'Sec-Fetch-Site': 'cross-site' },
      { 'Sec-Fetch-Site': 'same-site' },
      { 'Sec-Fetch-Site': 'none' },
      { Origin: 'https://evil.example' },
      { Origin: 'null' },
      { Origin: '' },
    ];
    for (const headers of foreign) {
      const response = await app.post(
        '/outbox/dead-letters/run',
        { action: 'discard', id },
        { headers },
      );
      expect([headers, response.status]).toEqual([headers, 403]);
    }
    expect(await app.deadLetters.count()).toBe(1);
    const headers = { Origin: 'https://anything.example', 'Sec-Fetch-Site': 'same-origin' };
    const response = await app.post(
      '/outbox/dead-letters/run',
      { action: 'discard', id },
      { headers },
    );
    expect(response.status).toBe(303);
    expect(await app.deadLetters.count()).toBe(0);
  });
});
