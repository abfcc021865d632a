import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { OnEvent } from '@nestjs/event-emitter';
import { migrateOutbox, NonRetryableError } from '../../src/index.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { startApp } from '../support/outbox-app.js';

const HOSTILE = '\u001b[31mred\u001b]0;title\u0007\nERROR [Outbox] all is lost\u202E 한국어';

class Listener {
  @OnEvent('a')
  fails(): void {
    throw new NonRetryableError(HOSTILE);
  }
}

let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase();
  await migrateOutbox({ database: database.pool });
});
afterAll(() => database.drop());

it('an error that carries escape sequences and line breaks is one line of the log, shown and not obeyed', async () => {
  await using app = await startApp({ outbox: { pool: database.pool }, providers: [Listener] });
  const { id } = await app.outbox.enqueue('a', {});
  await app.outbox.processPending();
  await app.eventIn('FAILED', id);
  const [line, ...more] = app.log.messages('error');
  expect(more).toEqual([]);
  expect(line).toContain(
    String.raw`\x1b[31mred\x1b]0;title\x07\nERROR [Outbox] all is lost\u{202e} 한국어`,
  );
  const everything = [...app.log.messages('warn'), ...app.log.messages('debug'), line].join('');
  // eslint-disable-next-line no-control-regex
  expect(everything).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/);
});
