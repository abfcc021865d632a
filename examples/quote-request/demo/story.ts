import { setTimeout as sleep } from 'node:timers/promises';
import type { QuoteRequest } from '../quote-requests.service.js';
import type { AppProcess } from './app-process.js';
import type { Narrator } from './narrator.js';
import { reportReckoning } from './reckoning.js';
import type { Stage } from './stage.js';
import { seconds, toEnvironment, waitsMs, type Tempo } from './tempo.js';
import { until } from './until.js';
import type { World } from './world.js';

/** The statements of a quote request's transaction, after which a process is killed. */
const FIRST_WRITE = /^INSERT INTO quote_requests/;
const SECOND_WRITE = /outbox_enqueue/;
const COMMIT = /^COMMIT$/;

const SOON_MS = 10_000;
/** The relay's tick comes every 15 seconds; a broken chain of ticks is mended within a minute. */
const TICK_MS = 80_000;

/** Sets the stage and tells the story. Throws at the first thing that is not as it should be. */
export async function tellStory(stage: Stage, narrator: Narrator, tempo: Tempo): Promise<boolean> {
  assertTellable(tempo);
  narrator.title('nestjs-outbox-relay: a quote request is saved, and its supplier gets a message');
  narrator.text(
    'Five things that go wrong sooner or later: real processes, real SIGKILLs, a real PostgreSQL.',
  );
  const plain = await stage.world('plain');
  const outbox = await stage.world('outbox');
  narrator.line('demo', 'PostgreSQL 18 and the message gateway are up');
  return new Story(stage, narrator, tempo, plain, outbox).tell();
}

class Story {
  private readonly environment: NodeJS.ProcessEnv;

  constructor(
    private readonly stage: Stage,
    private readonly narrator: Narrator,
    private readonly tempo: Tempo,
    private readonly plain: World,
    private readonly outbox: World,
  ) {
    this.environment = { ...toEnvironment(tempo), PORT: '0', OUTBOX_RELAY: 'on' };
  }

  async tell(): Promise<boolean> {
    await this.saveThenEmit();
    await this.killedBeforeTheCommit();
    const app = await this.killedAfterTheCommit();
    await this.gatewayFailsTwice(app);
    const next = await this.killedWhileDelivering(app);
    await this.alwaysFails(next);
    await next.stop();
    this.narrator.gap();
    this.narrator.title(`The reckoning, after ${this.narrator.elapsedSeconds().toFixed(0)} s`);
    return reportReckoning(this.narrator, { plain: this.plain, outbox: this.outbox });
  }

  private async saveThenEmit(): Promise<void> {
    const { narrator, plain } = this;
    narrator.chapter(1, 'Save, then emit: how a message is lost');
    narrator.text(
      'plain.ts commits the quote request, then emits the event in memory: nothing binds the two.',
    );
    const app = await this.start('plain');
    const quote = idOf(await this.submit(app, 'Office lobby', '010-1000-0001'));
    await until('the message is sent', SOON_MS, () => plain.gateway.sentAbout(quote).length > 0);

    narrator.line('demo', 'it works, until the process dies between the two writes:');
    await app.killAfter(FIRST_WRITE);
    await this.submit(app, 'Rooftop garden', '010-1000-0002');
    await this.dead(app, 'the quote is saved, the emit was still to come');

    const next = await this.start('plain');
    await sleep(1_000);
    narrator.line('demo', 'a second later: nothing. The event existed only in the dead process');
    await next.stop();
    this.check('quote requests saved', (await plain.quoteRequests()).length, 2);
    this.check('messages sent', plain.gateway.sent.length, 1);
  }

  private async killedBeforeTheCommit(): Promise<void> {
    const { narrator, outbox } = this;
    narrator.chapter(2, 'With the outbox: killed at the same place, and at the ones after it');
    narrator.text(
      'main.ts writes the quote request and its event in one transaction: both are there or neither.',
    );
    const places = [
      { statement: FIRST_WRITE, when: 'the quote was written, the event was still to come' },
      { statement: SECOND_WRITE, when: 'both were written, the commit was still to come' },
    ];
    for (const { statement, when } of places) {
      const app = await this.start('main');
      await app.killAfter(statement);
      await this.submit(app, 'Parking deck', '010-2000-0001');
      await this.dead(app, when);
      this.check('quote requests saved', (await outbox.quoteRequests()).length, 0);
      this.check('events stored', (await outbox.events()).length, 0);
    }
  }

  private async killedAfterTheCommit(): Promise<AppProcess> {
    const { narrator, outbox } = this;
    narrator.text('The client, who got no answer, asks a third time:');
    const app = await this.start('main');
    await app.killAfter(COMMIT);
    await this.submit(app, 'Parking deck', '010-2000-0001');
    await this.dead(app, 'both are committed, nothing has been delivered');
    const saved = await outbox.quoteRequests();
    const waiting = (await outbox.events()).filter(({ status }) => status !== 'COMPLETED');
    this.check('quote requests saved', saved.length, 1);
    this.check('events that wait', waiting.length, 1);
    this.check('messages sent', outbox.gateway.sent.length, 0);

    const quote = idOf(saved[0]);
    const next = await this.start('main');
    await this.untilCompleted(quote, TICK_MS);
    this.check('messages sent after the restart', outbox.gateway.sentAbout(quote).length, 1);
    return next;
  }

  private async gatewayFailsTwice(app: AppProcess): Promise<void> {
    const { narrator, outbox } = this;
    narrator.chapter(3, 'The gateway fails twice');
    narrator.text(
      'The event is tried again, each time later; the listener that has succeeded is left in peace.',
    );
    outbox.gateway.order({ fail: 2 });
    const quote = idOf(await this.submit(app, 'Warehouse 7', '010-3000-0001'));
    await this.untilCompleted(quote, SOON_MS + waitsMs(this.tempo, 2));

    const event = await outbox.eventAbout(quote);
    const attempts = outbox.gateway.attempts(event.id);
    const waits = attempts.slice(1).map((at, before) => seconds(at - (attempts[before] ?? at)));
    this.check('calls of the notification listener', attempts.length, 3);
    narrator.holds('waits between them', waits.join(', '));
    this.check('calls of the audit listener', await this.auditCalls(event.id), 1);
  }

  private async killedWhileDelivering(app: AppProcess): Promise<AppProcess> {
    const { narrator, outbox, tempo } = this;
    narrator.chapter(4, 'The relay dies in the middle of a delivery');
    narrator.text(
      'The gateway sends the message, but the process is killed while it waits for the answer. Was it sent? ' +
        'Nobody in the application can know.',
    );
    outbox.gateway.order({ hang: true });
    const quote = idOf(await this.submit(app, 'Riverside hall', '010-4000-0001'));
    const event = await outbox.eventAbout(quote);
    await until('both listeners have been called', SOON_MS, async () => {
      return outbox.gateway.waiting > 0 && (await this.auditCalls(event.id)) > 0;
    });
    app.kill();
    const killedAt = performance.now();
    await this.dead(app, 'waiting for the gateway');
    outbox.gateway.order({ mend: true });
    this.check('state of its event', (await outbox.eventAbout(quote)).status, 'PROCESSING');

    const next = await this.start('main');
    narrator.line(
      'demo',
      `its lease of ${seconds(tempo.leaseMs)} runs out; every 15 s a relay looks for such events`,
    );
    await this.untilCompleted(quote, TICK_MS + tempo.leaseMs + waitsMs(tempo, 1));
    narrator.line('demo', `delivered ${seconds(performance.now() - killedAt)} after the kill`);
    const messages = outbox.gateway.sentAbout(quote);
    this.check('requests to the gateway', messages.flatMap(({ requests }) => requests).length, 2);
    this.check('messages to the supplier', messages.length, 1);
    narrator.text(
      'The audit listener was called again, too: only the dead process knew that it had succeeded. Delivery is at ' +
        'least once, so listeners go by the id of the event, as both of these do.',
    );
    this.check('calls of the audit listener', await this.auditCalls(event.id), 2);
    return next;
  }

  private async alwaysFails(app: AppProcess): Promise<void> {
    const { narrator, outbox, tempo } = this;
    narrator.chapter(5, 'An event that always fails');
    narrator.text(
      `The gateway refuses one supplier. After ${tempo.maxRetries} attempts the event is set aside, for all to see.`,
    );
    const phone = '010-5000-0001';
    outbox.gateway.order({ failFor: phone });
    const quote = idOf(await this.submit(app, 'Harbour cafe', phone));
    await until('the alarm fires', SOON_MS + waitsMs(tempo, tempo.maxRetries - 1), () =>
      app.logs.some(({ context }) => context === 'Alarm'),
    );
    const { id, status } = await outbox.eventAbout(quote);
    this.check('state of its event', status, 'FAILED');

    const { items } = (await app.get('/outbox/dead-letters')) as {
      items: { id: string; retryCount: number; lastError: string }[];
    };
    narrator.line('client', 'GET /outbox/dead-letters');
    this.check('dead letters listed', items.map((item) => item.id).join(', '), id);
    this.check('failed attempts', items[0]?.retryCount, tempo.maxRetries);
    narrator.holds('reason', items[0]?.lastError);

    outbox.gateway.order({ mend: true });
    narrator.line('demo', 'the gateway is mended');
    const redriven = await app.post(`/outbox/dead-letters/${id}/redrive`);
    narrator.line('client', `POST /outbox/dead-letters/${id}/redrive -> ${redriven.status}`);
    await this.untilCompleted(quote, SOON_MS);
    this.check('messages sent', outbox.gateway.sentAbout(quote).length, 1);
    this.check('calls of the audit listener', await this.auditCalls(id), 1);
  }

  private async start(app: 'main' | 'plain'): Promise<AppProcess> {
    const world = app === 'main' ? this.outbox : this.plain;
    return this.stage.start(app, world, this.environment);
  }

  /** Somebody asks for a quote; `undefined` if no answer came. */
  private async submit(
    app: AppProcess,
    projectName: string,
    supplierPhone: string,
  ): Promise<QuoteRequest | undefined> {
    const what = `POST /quote-requests "${projectName}"`;
    const answer = await app
      .post('/quote-requests', { projectName, supplierPhone })
      .catch((error: unknown) => {
        if (error instanceof TypeError) return undefined; // what fetch says to a broken connection
        throw error;
      });
    this.narrator.line('client', `${what} -> ${answer?.status ?? 'the connection broke'}`);
    if (answer !== undefined && answer.status !== 201)
      throw new Error(`${what} was answered with ${JSON.stringify(answer.body)}`);
    return answer?.body as QuoteRequest | undefined;
  }

  private async dead(app: AppProcess, when: string): Promise<void> {
    await app.untilKilled();
    this.narrator.line('app', `pid ${app.pid} died by ${app.end}: ${when}`);
  }

  private async untilCompleted(quoteRequestId: string, timeoutMs: number): Promise<void> {
    await until(`the event about ${quoteRequestId} is COMPLETED`, timeoutMs, async () => {
      const { status } = await this.outbox.eventAbout(quoteRequestId);
      return status === 'COMPLETED';
    });
  }

  private async auditCalls(eventId: string): Promise<number> {
    return (await this.outbox.auditCalls()).get(eventId) ?? 0;
  }

  private check(what: string, found: unknown, expected: string | number): void {
    if (found !== expected)
      throw new Error(`${what}: expected ${expected}, found ${String(found)}`);
    this.narrator.holds(what, found);
  }
}

function idOf(quote: QuoteRequest | undefined): string {
  if (quote === undefined) throw new Error('there is no quote request');
  return quote.id;
}

function assertTellable(tempo: Tempo): void {
  const waits = waitsMs(tempo, tempo.maxRetries - 1);
  if (tempo.maxRetries >= 3 && waits <= 30_000 && tempo.leaseMs <= 10_000) return;
  throw new Error(
    'the story needs OUTBOX_MAX_RETRIES of 3 or more, OUTBOX_LEASE_MS of at most 10000, and an OUTBOX_BACKOFF_UNIT_MS ' +
      `with which all waits together last at most 30 s; found ${tempo.maxRetries}, ${tempo.leaseMs} and ${seconds(waits)}`,
  );
}
