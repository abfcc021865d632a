import { randomBytes } from 'node:crypto';
import { wholeNumber } from '../settings.js';
import type { AppProcess } from './app-process.js';
import type { Narrator } from './narrator.js';
import { furnish } from './furnish.js';
import type { Stage } from './stage.js';
import { toEnvironment, type Tempo } from './tempo.js';

/** Starts everything and says what to try. From then on it prints what happens. */
export async function serve(stage: Stage, narrator: Narrator, tempo: Tempo): Promise<AppProcess> {
  const databaseUrl = process.env['DATABASE_URL'] || undefined;
  const password =
    process.env['OUTBOX_DASHBOARD_PASSWORD'] || randomBytes(12).toString('base64url');
  const world = await stage.world('quote_request', {
    databaseUrl,
    gatewayPort: wholeNumber('GATEWAY_PORT', 3001),
  });
  const app = await stage.start('main', world, {
    ...toEnvironment(tempo),
    PORT: String(wholeNumber('PORT', 3000)),
    OUTBOX_DASHBOARD_PASSWORD: password,
  });
  // Only what is thrown away afterwards is furnished: a database of somebody's own is left as it is.
  if (databaseUrl === undefined) await furnish(app, world);
  narrator.raw(hints(app.url, world.gateway.url, world.databaseUrl, password));
  return app;
}

function hints(app: string, gateway: string, database: string, password: string): string {
  return `
    application  ${app}
    dashboard    ${app}/dashboard   user ops, password ${password}
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

    Ask the doctor (the dead letters above are all that it finds), and redrive by the command line:
      node dist/cli.js doctor --connection ${database}
      node dist/cli.js dead-letters redrive --all --dry-run --connection ${database}

    Ctrl+C ends it and cleans up.
`;
}
