import { describe, expect, it } from '@jest/globals';
import { hasPostgrest } from '../../tools/postgrest.js';
import { startChild } from '../support/child.js';
import { didNotRun } from '../support/supabase/projects.js';

describe('examples/supabase', () => {
  if (!hasPostgrest()) {
    didNotRun('examples/supabase');
    return;
  }

  it('stores and delivers what its README says, and leaves nothing behind', async () => {
    const own = { SUPABASE_URL: undefined, SUPABASE_SERVICE_ROLE_KEY: undefined, NO_COLOR: '1' };
    const child = startChild('../../examples/supabase/demo', { env: own });
    expect(await child.exited).toEqual({ code: 0, signal: null });
    const lines = child.stdout
      .split('\n')
      .filter((line) => /^\w+( in the outbox)?:|^left/.test(line));
    expect(new Set(lines)).toEqual(
      new Set([
        'created: no signal (attempt 1)',
        'created: Office renovation, told (attempt 2)',
        'assigned: supplier 7, told',
        'refused: neither a quote request nor an event',
        'left in the outbox: 0',
      ]),
    );
    expect(lines.at(-1)).toBe('left in the outbox: 0');
  });
});
