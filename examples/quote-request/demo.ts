/**
 * npm run demo               tells the story; exit status 0 only if database and gateway agree
 * npm run demo -- --serve    leaves the application running, to be tried out by hand
 */
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Narrator } from './demo/narrator.js';
import { serve } from './demo/serve.js';
import { Stage } from './demo/stage.js';
import { tellStory } from './demo/story.js';
import { readTempo } from './demo/tempo.js';

const ROOT = path.resolve(import.meta.dirname, '../../..');
const TOLD_WITHIN_MS = 240_000;
const CLEARED_WITHIN_MS = 40_000;
const LOG_TAIL = 40;
const NEST_STARTS = /\[(NestFactory|InstanceLoader|RoutesResolver|RouterExplorer)\]/;

const { values } = parseArgs({ options: { serve: { type: 'boolean', default: false } } });
const envFile = path.join(ROOT, '.env');
if (existsSync(envFile)) process.loadEnvFile(envFile);

const narrator = new Narrator(!values.serve);
const stage = new Stage(narrator);

const exitCode = await Promise.race([run(), untilInterrupted()]);
narrator.fallSilent();
const cleared = await Promise.race([stage.clear().then(() => true, String), tooLongToClear()]);
if (cleared !== true) console.error(`could not clean up: ${cleared}`);
process.exit(cleared === true ? exitCode : exitCode || 1);

/** @returns the exit status. Never rejects. */
async function run(): Promise<number> {
  try {
    const tempo = readTempo();
    if (values.serve) {
      const app = await serve(stage, narrator, tempo);
      await app.untilEnded();
      throw new Error(`the application ended: ${app.end}`);
    }
    const agreed = await Promise.race([tellStory(stage, narrator, tempo), tooLong()]);
    return agreed ? 0 : 1;
  } catch (error) {
    // Ctrl+C may be behind it, e.g. in the middle of initdb: then let that be told first.
    await sleep(100);
    if (!stage.isCleared) explain(error);
    return 1;
  }
}

async function tooLong(): Promise<never> {
  await sleep(TOLD_WITHIN_MS, undefined, { ref: false });
  throw new Error(`the story was not told within ${TOLD_WITHIN_MS / 1_000} s`);
}

function explain(error: unknown): void {
  for (const app of stage.apps) {
    narrator.raw(`\n--- the last lines of ${app.app}.ts, pid ${app.pid} (${app.end})`);
    const lines = app.output.filter((line) => !NEST_STARTS.test(line));
    narrator.raw(lines.slice(-LOG_TAIL).join('\n'));
  }
  narrator.gap();
  const message = error instanceof Error ? error.message : String(error);
  narrator.bad(`FAILED  ${message}`);
  const printed = [message, ...stage.apps.flatMap(({ output }) => output)];
  if (printed.some((line) => line.includes('EADDRINUSE')))
    narrator.bad('Other ports: PORT=4000 GATEWAY_PORT=4001 npm run demo -- --serve');
}

async function tooLongToClear(): Promise<string> {
  await sleep(CLEARED_WITHIN_MS, undefined, { ref: false });
  return `it took longer than ${CLEARED_WITHIN_MS / 1_000} s`;
}

/** @returns the exit status that says so */
async function untilInterrupted(): Promise<number> {
  const signal = await new Promise<NodeJS.Signals>((resolve) => {
    for (const each of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(each, resolve);
    // npm's shell does not pass on a signal that was meant for us: when it is gone, so are we.
    const { ppid } = process;
    const look = (): void => void (process.ppid !== ppid && resolve('SIGTERM'));
    if (process.env['npm_lifecycle_event'] === 'demo') setInterval(look, 500).unref();
  });
  narrator.gap();
  narrator.line('demo', `${signal}: ending everything`);
  return 128 + constants.signals[signal];
}
