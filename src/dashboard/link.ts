/** Makes links to other pages of the dashboard. */
export type Link = (page: string, query?: Readonly<Record<string, LinkValue>>) => string;

type LinkValue = string | readonly string[] | number | null | undefined;

/**
 * Links are relative to the page they are on: where the application mounted the dashboard (a global prefix, a version,
 * a proxy's path) is its own affair.
 * @param path of the request, as it was sent
 * @param depth how many segments below the dashboard it lies
 * @param carried what every link takes along, e.g. the language that was chosen
 */
export function linkFrom(
  path: string,
  depth: number,
  carried: Readonly<Record<string, LinkValue>> = {},
): Link {
  const prefix = prefixFrom(path, depth);
  return (page, query = {}) => {
    const search = new URLSearchParams();
    for (const [key, value] of Object.entries({ ...carried, ...query })) {
      const values = Array.isArray(value) ? (value as readonly string[]) : [value];
      for (const each of values) {
        if (each !== null && each !== undefined && each !== '') search.append(key, String(each));
      }
    }
    const text = search.size === 0 ? '' : `?${search}`;
    // The dashboard itself, without a slash behind it: the router may be strict.
    if (page === '') return `${prefix.replace(/\/$/, '')}${text}`;
    return `${prefix}${page}${text}`;
  };
}

function prefixFrom(path: string, depth: number): string {
  const segments = path.split('/').filter((segment) => segment !== '');
  const name = segments.at(-1 - depth);
  const up = depth + (path.endsWith('/') ? 1 : 0);
  // At the root of the server it has no name to go down into again.
  if (name === undefined) return upwards(up - 1);
  return `${upwards(up)}${name}/`;
}

function upwards(levels: number): string {
  return levels > 0 ? '../'.repeat(levels) : './';
}
