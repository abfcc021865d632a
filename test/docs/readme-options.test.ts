import { describe, expect, it } from '@jest/globals';
import { DEFAULTS, resolveOptions } from '../../src/outbox-options.js';
import { InMemoryOutboxStore } from '../../src/testing.js';
import { readOptionsTable, type OptionRow } from './read-options-table.js';

const store = new InMemoryOutboxStore();

describe.each(['README.md', 'README.ko.md'])('the table of options in %s', (file) => {
  const rows = readOptionsTable(file);
  const withBounds = rows.filter(({ bounds }) => bounds !== undefined);

  it('names every option there is, and no other', () => {
    const groups = ['retry', 'relay', 'retention'];
    const top = knownKeys((key) => ({ store, [key]: 1 }));
    const nested = groups.flatMap((group) =>
      knownKeys((key) => ({ store, [group]: { [key]: 1 } })).map((key) => `${group}.${key}`),
    );
    // Groups have no row of their own, but for `relay`, which may be false.
    const named = [...top.filter((key) => !['retry', 'retention'].includes(key)), ...nested];
    expect(rows.map(({ name }) => name).toSorted()).toEqual(named.toSorted());
  });

  it('gives the defaults that the code has', () => {
    const written = Object.fromEntries(
      rows
        .filter(({ defaultValue }) => defaultValue !== undefined)
        .map(({ name, defaultValue }) => [name, defaultValue]),
    );
    expect(written).toEqual(flatDefaults());
  });

  it('gives the bounds that the code has', () => {
    for (const { name, bounds: [min, max] = [0, 0] } of withBounds) {
      expect(accepts(name, min)).toBe(true);
      expect(accepts(name, max)).toBe(true);
      expect(accepts(name, min - 1)).toBe(false);
      expect(accepts(name, max + 1)).toBe(false);
    }
  });

  it('gives bounds for every number', () => {
    const numbers = rows.filter(({ defaultValue }) => typeof defaultValue === 'number');
    expect(withBounds).toEqual(numbers);
  });

  it('says of each what it means', () => {
    expect(rows.filter(({ meaning }: OptionRow) => meaning === '')).toEqual([]);
  });
});

it('the tables of options agree in all but the words', () => {
  const [english, korean] = ['README.md', 'README.ko.md'].map((file) =>
    readOptionsTable(file).map(({ name, defaultValue, bounds }) => ({
      name,
      defaultValue,
      bounds,
    })),
  );
  expect(korean).toEqual(english);
});

/** The options' own list of what they know, as they tell whoever misspells one. */
function knownKeys(optionsWith: (key: string) => object): string[] {
  try {
    resolveOptions(optionsWith('zzzzzzzzzzzzzzzzzzzz'));
  } catch (error) {
    const [, list] = /known are (.*)$/.exec((error as Error).message) ?? [];
    if (list !== undefined) return list.split(', ');
  }
  throw new Error('an unknown option was not refused with the list of those that are known');
}

/** What stands in DEFAULTS under dotted names, but for the backoff, which is a function. */
function flatDefaults(): Record<string, unknown> {
  const { retry, relay, retention, ...top } = DEFAULTS;
  const flat: Record<string, unknown> = { ...top };
  for (const [group, values] of Object.entries({ retry, relay, retention })) {
    for (const [key, value] of Object.entries(values)) {
      if (typeof value !== 'function') flat[`${group}.${key}`] = value;
    }
  }
  return flat;
}

function accepts(name: string, value: number): boolean {
  const [group, key] = name.split('.');
  const given = key === undefined ? { [name]: value } : { [String(group)]: { [key]: value } };
  // Dead letters must not be pruned before what succeeded: the other one of the pair stands aside.
  if (name === 'retention.completedMs') Object.assign(given['retention']!, { failedMs: false });
  if (name === 'retention.failedMs') Object.assign(given['retention']!, { completedMs: 0 });
  try {
    resolveOptions({ store, ...given });
    return true;
  } catch {
    return false;
  }
}
