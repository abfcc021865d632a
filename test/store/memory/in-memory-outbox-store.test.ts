import { describe, expect, it } from '@jest/globals';
import { InMemoryOutboxStore } from '../../../src/store/memory/in-memory-outbox-store.js';
import { describeStore, type RawRow, type StoreUnderTest } from '../conformance.js';
import { newEvent } from '../conformance/subject.js';

async function openInMemory(): Promise<StoreUnderTest> {
  let store = new InMemoryOutboxStore();
  let passedMs = 0;
  return {
    get store() {
      return store;
    },
    async clear() {
      store = new InMemoryOutboxStore();
      passedMs = 0;
    },
    async now() {
      return Date.now() + passedMs;
    },
    async pass(ms) {
      store.advance(ms);
      passedMs += ms;
    },
    async row(id) {
      return rowsOf(store).get(id) ?? null;
    },
    async analyze() {},
    async [Symbol.asyncDispose]() {
      await store.close();
    },
  };
}

/** Leases are nobody's business but the store's, so there is no public way to see them. */
function rowsOf(store: InMemoryOutboxStore): Map<string, RawRow> {
  interface Rows {
    rows: Map<string, RawRow & { payload: string; metadata: string; sequence: number }>;
  }
  const parse = (json: string): unknown => JSON.parse(json);
  const { rows } = store as unknown as Rows;
  return new Map(
    [...rows].map(([id, { sequence, payload, metadata, ...row }]) => {
      expect(sequence).toEqual(expect.any(Number));
      return [id, Object.assign(row, { payload: parse(payload), metadata: parse(metadata) })];
    }),
  );
}

describeStore('the in-memory store', openInMemory);

describe('the in-memory store', () => {
  it('shows all events, oldest first, for the tests of an application', async () => {
    const store = new InMemoryOutboxStore();
    const events = [newEvent({ eventType: 'a' }), newEvent({ eventType: 'b' })];
    await store.enqueue(events);
    expect(store.all()).toEqual([await store.find(events[0]!.id), await store.find(events[1]!.id)]);
    expect(store.all().map(({ eventType }) => eventType)).toEqual(['a', 'b']);
  });
});
