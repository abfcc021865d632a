/**
 * Which fields are not for the eyes of those who look.
 *
 * Names: `'phone'` hides every field of that name, whatever it lies in, `'customer.phone'` those below a `customer`,
 * `'metadata.token'` that one alone. Upper and lower case are alike, indices of arrays are passed over. A function is
 * asked for each field, with its path (`payload.customers.0.phone`); one that throws hides it.
 */
export type DashboardMask = readonly string[] | ((path: string, value: unknown) => boolean);

/** What stands in place of a hidden value. */
export const MASKED = '•••';

/** A copy of a JSON value with hidden fields replaced. @param root `payload` or `metadata` */
export function masked(value: unknown, root: string, mask: DashboardMask | undefined): unknown {
  if (mask === undefined) return value;
  const hides = typeof mask === 'function' ? byFunction(mask) : byNames(mask);
  return copy(value, [root], hides);
}

type Hides = (path: readonly string[], value: unknown) => boolean;

function copy(value: unknown, path: readonly string[], hides: Hides): unknown {
  if (path.length > 1 && hides(path, value)) return MASKED;
  if (Array.isArray(value)) return value.map((item, i) => copy(item, [...path, String(i)], hides));
  if (typeof value !== 'object' || value === null) return value;
  // fromEntries and not an assignment: a key may be called __proto__.
  return Object.fromEntries(
    Object.entries(value).map(([key, field]) => [key, copy(field, [...path, key], hides)]),
  );
}

function byFunction(mask: (path: string, value: unknown) => boolean): Hides {
  return (path, value) => {
    try {
      return mask(path.join('.'), value);
    } catch {
      return true;
    }
  };
}

function byNames(names: readonly string[]): Hides {
  const hidden = names.map((name) => `.${name.toLowerCase()}`);
  return (path) => {
    // An item of an array has the name of the array: it was decided there.
    const named = path.filter((key, i) => i === 0 || !/^\d+$/.test(key));
    const full = `.${named.join('.').toLowerCase()}`;
    return hidden.some((name) => full.endsWith(name));
  };
}
