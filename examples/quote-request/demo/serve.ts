import { wholeNumber } from '../settings.js';
import type { AppProcess } from './app-process.js';
import type { Narrator } from './narrator.js';
import type { Stage } from './stage.js';
import { toEnvironment, type Tempo } from './tempo.js';

/** Starts everything and says what to try. From then on it prints what happens. */
export async function serve(stage: Stage, narrator: Narrator, tempo: Tempo): Promise<AppProcess> {
  const world = await stage.world('quote_request', {
    databaseUrl: process.env['DATABASE_URL'] || undefined,
    gatewayPort: wholeNumber('GATEWAY_PORT', 3001),
  });
  const app = await stage.start('main', world, {
    ...toEnvironment(tempo),
    PORT: String(wholeNumber('PORT', 3000)),
  });
  narrator.raw(hints(app.url, world.gateway.url, world.databaseUrl));
  return app;
}

function hints(app: string, gateway: string, database: string): string {
  return `
    application  ${app}
    gateway      ${gateway}
    database     ${database}

    Ask for a quote, and see what the gateway has sent:
      curl ${app}/quote-requests -H 'content-type: application/json' \\
        -d '{"projectName": "Office lobby", "supplierPhone": "010-1234-5678"}'
      curl ${gateway}/messages

    Make the gateway fail, twice or for one supplier, or hang; then mend it:
      curl ${gateway}/control -d '{"fail": 2}'
      curl ${gateway}/control -d '{"failFor": "010-1234-5678"}'
      curl ${gateway}/control -d '{"hang": true}'
      curl ${gateway}/control -d '{"mend": true}'
    (A supplierPhone that is no phone number makes a dead letter at once.)

    Look at the outbox, and give its dead letters a second life:
      curl ${app}/outbox/stats
      curl ${app}/outbox/dead-letters
      curl -X POST ${app}/outbox/dead-letters/redrive

    Ctrl+C ends it and cleans up.
`;
}
