import type { AcceptedRequest, SentMessage } from '../gateway.js';
import type { QuoteRequest } from '../quote-requests.service.js';
import type { Narrator } from './narrator.js';
import type { World } from './world.js';

/** The database's quote requests, held against the gateway's ledger. */
export interface Reckoning {
  readonly saved: readonly QuoteRequest[];
  readonly sent: readonly SentMessage[];
  /** Saved, and no message went out. */
  readonly lost: readonly QuoteRequest[];
  /** A message that says something else than the database, or speaks of nothing in it. */
  readonly wrong: readonly SentMessage[];
  /** More than one message went out. */
  readonly twice: readonly QuoteRequest[];
  /** Requests that the gateway knew by their key, and what became of the answer to the one before. */
  readonly repeated: readonly { key: string; answerBefore: AcceptedRequest['answer'] }[];
}

const WHY: Record<AcceptedRequest['answer'], string> = {
  lost: 'the first caller was gone before the answer, so the application could not know',
  waits: 'the first caller still waits for the answer',
  arrived: 'the answer arrived, but was not stored',
};

export async function reckon(world: World): Promise<Reckoning> {
  const saved = await world.quoteRequests();
  const { sent } = world.gateway;
  const messages = ({ id }: QuoteRequest) => world.gateway.sentAbout(id).length;
  return {
    saved,
    sent,
    lost: saved.filter((quote) => messages(quote) === 0),
    twice: saved.filter((quote) => messages(quote) > 1),
    wrong: sent.filter(({ message: { to, variables } }) => {
      const quote = saved.find(({ id }) => id === variables['quoteRequestId']);
      return quote?.supplierPhone !== to || quote.projectName !== variables['projectName'];
    }),
    repeated: sent.flatMap(({ key, requests }) =>
      requests.slice(0, -1).map(({ answer }) => ({ key, answerBefore: answer })),
    ),
  };
}

/**
 * The end of the story. It takes nothing from the chapters, only what the databases and the gateways
 * say now. Answers whether they agree.
 */
export async function reportReckoning(
  narrator: Narrator,
  { plain, outbox }: { plain: World; outbox: World },
): Promise<boolean> {
  const before = await reckon(plain);
  const after = await reckon(outbox);
  const row = (what: string, count: (reckoning: Reckoning) => number): string[] => [
    what,
    String(count(before)),
    String(count(after)),
  ];
  narrator.table([
    ['', 'save, then emit', 'outbox'],
    row('quote requests saved', ({ saved }) => saved.length),
    row('messages sent (distinct)', ({ sent }) => sent.length),
    row('lost: saved, never sent', ({ lost }) => lost.length),
    row('wrong: sent, not as saved', ({ wrong }) => wrong.length),
    row('sent twice to the supplier', ({ twice }) => twice.length),
    row('duplicate requests, known by their key and not sent', ({ repeated }) => repeated.length),
  ]);
  for (const { key, answerBefore } of after.repeated)
    narrator.text(`Why the gateway was asked twice for ${key}: ${WHY[answerBefore]}.`);

  const complaints = [
    ...before.wrong.map(({ key }) => `save, then emit: message ${key} is not as saved`),
    ...(before.lost.length === 1
      ? []
      : [`save, then emit: 1 message should have been lost here, it was ${before.lost.length}`]),
    ...(await complaintsAbout(outbox, after)),
  ];
  narrator.gap();
  if (complaints.length === 0)
    narrator.good(
      `Database and gateway agree: save, then emit lost ${before.lost.length} of ${before.saved.length}; ` +
        `the outbox lost ${after.lost.length} of ${after.saved.length}.`,
    );
  for (const complaint of complaints) narrator.bad(`WRONG  ${complaint}`);
  return complaints.length === 0;
}

async function complaintsAbout(outbox: World, { saved, ...found }: Reckoning): Promise<string[]> {
  const open = (await outbox.events()).filter(({ status }) => status !== 'COMPLETED');
  const audited = (await outbox.auditCalls()).size;
  return [
    ...found.lost.map(({ id, projectName }) => `${projectName} (${id}) was never sent`),
    ...found.wrong.map(({ key }) => `message ${key} is not as saved`),
    ...found.twice.map(({ id, projectName }) => `${projectName} (${id}) was sent twice`),
    ...open.map(({ id, status }) => `event ${id} is ${status}`),
    ...(saved.length > 0 ? [] : ['nothing was saved at all']),
    ...(audited === saved.length
      ? []
      : [`${audited} audit entries for ${saved.length} quote requests`]),
  ].map((complaint) => `outbox: ${complaint}`);
}
