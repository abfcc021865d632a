import type { INestApplicationContext } from '@nestjs/common';
import { OutboxError } from './event/outbox-error.js';
import { RESOLVED_OPTIONS } from './outbox.module.js';
import type { ResolvedOptions } from './outbox-options.js';
import { OutboxService } from './outbox.service.js';
import { OutboxStore, type StoredEvent } from './store/outbox-store.js';

const MOST_PASSES = 1_000;

/**
 * Delivers every event that is due, those included that listeners enqueue meanwhile, and answers what became of them:
 *
 * ```ts
 * const store = new InMemoryOutboxStore();
 * const module = await Test.createTestingModule({ imports: [AppModule] })
 *   .overrideProvider(OUTBOX_MODULE_OPTIONS)
 *   .useValue({ store, relay: false })
 *   .compile();
 * const app = await module.init();
 *
 * await app.get(QuoteRequests).create('q-1');
 * expect(await deliverDue(app)).toMatchObject([
 *   { eventType: 'quote_request.created', status: 'COMPLETED' },
 * ]);
 * ```
 *
 * A listener that failed is due again after its wait: `store.advance(2 * 60_000)`, and once more.
 *
 * @param app initialised (`await app.init()`), with `relay: false`, so that nothing is delivered but by this
 * @returns each event once, as it is stored now, in the order of their first delivery
 * @throws OutboxError `SETUP` if the relay is on, the listeners are not attached, or there is no end to it
 */
export async function deliverDue(
  app: Pick<INestApplicationContext, 'get'>,
): Promise<StoredEvent[]> {
  const outbox = app.get(OutboxService, { strict: false });
  const store = app.get<OutboxStore>(OutboxStore, { strict: false });
  const { relaying } = app.get<ResolvedOptions>(RESOLVED_OPTIONS, { strict: false });
  if (relaying) {
    throw new OutboxError(
      'SETUP',
      'deliverDue needs relay: false, or the relay delivers beside it',
    );
  }
  const ids = await claimedWhile(store, async () => {
    for (let pass = 0; (await outbox.processPending()) > 0; pass++) {
      if (pass < MOST_PASSES) continue;
      throw new OutboxError(
        'SETUP',
        `after ${MOST_PASSES} passes there are still events due: does a listener enqueue what it listens to?`,
      );
    }
  });
  const events = await Promise.all(ids.map(async (id) => store.find(id)));
  return events.filter((event) => event !== null);
}

/** The ids of the events that are claimed meanwhile, each once. */
async function claimedWhile(store: OutboxStore, work: () => Promise<void>): Promise<string[]> {
  const ids = new Set<string>();
  const claim = store.claim.bind(store);
  store.claim = async (request) => {
    const events = await claim(request);
    for (const { id } of events) ids.add(id);
    return events;
  };
  try {
    await work();
  } finally {
    store.claim = claim;
  }
  return [...ids];
}
