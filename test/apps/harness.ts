/** What harness.test.ts starts: says "ready", answers every line of its stdin, stays until killed. */
import { createInterface } from 'node:readline';

const say = (message: object) => console.log(JSON.stringify(message));

for (const [index, argument] of process.argv.slice(2).entries())
  say({ type: 'argument', index, argument });
console.error('on stderr');
say({ type: 'ready', greeting: process.env['GREETING'] });

createInterface({ input: process.stdin }).on('line', (line) => {
  if (line === 'exit') process.exit(3);
  say({ type: 'echo', line });
});
