/**
 * Loaded into the applications that the demo starts (node --import), so that their own code knows
 * nothing of the demo. It ends the process together with the demo, and holds the kill switch: told
 * `{ killAfter: '^COMMIT$' }`, it lets no statement follow the next one that matches, and ends the
 * process with SIGKILL when the database has answered it, before the application learns of it.
 */
import pg from 'pg';

type Query = (this: pg.Client, ...args: unknown[]) => unknown;
type Callback = (...answer: unknown[]) => void;

let killAfter: RegExp | undefined;
let doomed = false;

const client = pg.Client.prototype as unknown as { query: Query };
const { query } = client;

client.query = function (...args) {
  if (doomed) return new Promise(() => {}); // other connections would go on until the answer comes
  doomed = killAfter?.test(textOf(args[0])) === true;
  if (!doomed) return query.apply(this, args);
  const callback = args.at(-1) as Callback;
  if (typeof callback === 'function')
    return query.apply(this, [...args.slice(0, -1), dying(callback)]);
  return (query.apply(this, args) as Promise<unknown>).then(dying((result) => result));
};

function dying<Answer extends unknown[], Result>(
  next: (...answer: Answer) => Result,
): (...answer: Answer) => Result {
  return (...answer) => {
    process.kill(process.pid, 'SIGKILL');
    return next(...answer);
  };
}

function textOf(config: unknown): string {
  return typeof config === 'string' ? config : String((config as { text?: unknown }).text);
}

process.on('message', (order: { killAfter: string }) => {
  killAfter = new RegExp(order.killAfter);
  process.send?.('armed');
});
process.on('disconnect', () => process.exit(1));
process.channel?.unref();
