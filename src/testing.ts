// The second door: for the tests of applications.
export { assertAwaited, type AwaitedDependency } from './assert-awaited.testing.js';
export { deliverDue } from './outbox.testing.js';
export { InMemoryOutboxStore } from './store/memory/in-memory-outbox-store.js';

/**
 * The token of what was given to `forRoot` or `forRootAsync`, to be overridden where a test uses the application's
 * own modules: `.overrideProvider(OUTBOX_MODULE_OPTIONS).useValue({ store, relay: false })`.
 */
export { OUTBOX_MODULE_OPTIONS } from './outbox.module-definition.js';
