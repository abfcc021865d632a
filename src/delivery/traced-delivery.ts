import { errorText } from '../event/error-text.js';
import type { ClaimedEvent } from '../store/outbox-store.js';
import { strayWork } from './attempt.js';
import { Delivery, type RunningDelivery } from './delivery.js';

let watchers = 0;
let counted = 0;

/**
 * A delivery whose listeners can be told when work they did not await fails later. That they returned while work was
 * still pending cannot be proved; but Node runs the handlers of an unhandled rejection in the async context it came from.
 */
export class TracedDelivery extends Delivery {
  private watching = false;

  override start(event: ClaimedEvent): RunningDelivery {
    if (this.watching) keepCompany();
    return super.start(event);
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
  const stray = strayWork();
  stray?.log.error(
    `${stray.eventType} ${stray.id}: ${stray.listener} did not await work that it started, and that has failed ` +
      `after the listener counted as succeeded (await it, or return its promise): ${errorText(reason)}`,
  );
}
