import { AsyncLocalStorage } from 'node:async_hooks';
import { errorText } from '../event/error-text.js';
import type { ClaimedEvent } from '../store/outbox-store.js';
import { currentListener } from './attempt.js';
import { Delivery, type DeliveryOptions, type RunningDelivery } from './delivery.js';
import type { Emitter } from './emitter.js';
import type { ListenerRegistry } from './listener-registry.js';

interface Trace {
  readonly event: Pick<ClaimedEvent, 'id' | 'eventType'>;
  readonly log: { error(message: string): void };
}

const TRACE = new AsyncLocalStorage<Trace>();
let watchers = 0;
let counted = 0;

/**
 * A delivery whose listeners can be told when work they did not await fails later. That they returned while work was
 * still pending cannot be proved; but Node runs the handlers of an unhandled rejection in the async context it came from.
 */
export class TracedDelivery extends Delivery {
  private watching = false;

  constructor(
    emitter: Emitter,
    registry: ListenerRegistry,
    options: DeliveryOptions,
    private readonly log: Trace['log'],
  ) {
    super(emitter, registry, options);
  }

  override start(event: ClaimedEvent): RunningDelivery {
    if (this.watching) keepCompany();
    return TRACE.run({ event, log: this.log }, () => super.start(event));
  }

  watch(): void {
    if (this.watching) return;
    this.watching = true;
    if (watchers++ === 0) process.on('uncaughtExceptionMonitor', onUncaught);
  }

  unwatch(): void {
    if (!this.watching) return;
    this.watching = false;
    if (--watchers > 0) return;
    process.off('uncaughtExceptionMonitor', onUncaught);
    process.off('unhandledRejection', report);
    counted = 0;
  }
}

/**
 * With a listener of its own, an unhandled rejection no longer ends the process: that is the application's choice. So
 * there is one of ours only beside the application's; without, the monitor sees what ends the process, and leaves it.
 */
function keepCompany(): void {
  // For each event: counting is nearly free.
  const count = process.listenerCount('unhandledRejection');
  if (count === counted) return;
  const all = process.listeners('unhandledRejection');
  const others = all.filter((listener) => listener !== report).length;
  if (others > 0 && all.length === others) process.on('unhandledRejection', report);
  if (others === 0 && all.length > 0) process.off('unhandledRejection', report);
  counted = process.listenerCount('unhandledRejection');
}

function onUncaught(error: unknown, origin: NodeJS.UncaughtExceptionOrigin): void {
  if (origin === 'unhandledRejection') report(error);
}

function report(reason: unknown): void {
  const trace = TRACE.getStore();
  if (trace === undefined) return;
  const { eventType, id } = trace.event;
  trace.log.error(
    `${eventType} ${id}: ${currentListener() ?? 'a listener'} did not await work that it started, and that has failed ` +
      `after the listener counted as succeeded (await it, or return its promise): ${errorText(reason)}`,
  );
}
