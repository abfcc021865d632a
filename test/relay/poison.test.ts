import { expect, it, jest } from '@jest/globals';
import { Rig } from '../crash/rig.js';

jest.setTimeout(120_000);

const EDITS = {
  'an array for a payload': `payload = '[1, 2]'`,
  'a text for a payload': `payload = '"text"'`,
  'null for a payload': `payload = 'null'`,
  'a type that means something else to the emitter': `event_type = 'error'`,
  'an empty type': `event_type = ''`,
  'a type that every object has': `event_type = 'constructor'`,
};

it('rows that somebody has edited into something that cannot be delivered fail, each with a reason, and hold back nobody', async () => {
  await using rig = await Rig.open();
  const edited = new Map<string, string>();
  for (const [what, edit] of Object.entries(EDITS)) {
    const [id = ''] = await rig.store([{ n: 0 }]);
    await rig.database.query(`UPDATE outbox_events SET ${edit} WHERE id = $1`, [id]);
    edited.set(id, what);
  }
  await rig.store(Array.from({ length: 20 }, (_, n) => ({ n })));
  const app = await rig.start({ relay: { batchSize: 3 }, retry: { maxRetries: 1 } });
  await app.tick();
  const events = await rig.untilNoneIs('PENDING', 'PROCESSING');

  const failed = events.filter(({ status }) => status === 'FAILED');
  expect(new Set(failed.map(({ id }) => edited.get(id)))).toEqual(new Set(edited.values()));
  for (const { last_error } of failed) expect(last_error).toMatch(/payload|eventType/);
  expect(events.filter(({ status }) => status === 'COMPLETED')).toHaveLength(20);
});
