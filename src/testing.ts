// The second door: for the tests of applications.
export { InMemoryOutboxStore } from './store/memory/in-memory-outbox-store.js';
