/** What a request says of itself. Header names in lower case, as Node has them. */
export interface RequestHead {
  readonly method: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

const SAFE = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Whether a request that would change something comes from a page of another origin, or does not say from where: then
 * it is refused. Browsers say it in `Sec-Fetch-Site`, on plain HTTP only in `Origin`, and no page can forge either.
 * Decision 0019 has the sources.
 * @param origin of the dashboard as browsers see it, for proxies that rewrite `Host`
 * @returns why it is refused, `null` if it is not
 */
export function crossOriginProblem(
  { method, headers }: RequestHead,
  origin?: string,
): string | null {
  if (SAFE.has(method.toUpperCase())) return null;
  const site = header(headers['sec-fetch-site']);
  if (site !== undefined) {
    return site === 'same-origin' ? null : `Sec-Fetch-Site is ${JSON.stringify(site)}`;
  }
  const from = header(headers['origin']);
  if (from === undefined) return 'there is neither Sec-Fetch-Site nor Origin';
  const expected = origin === undefined ? header(headers['host']) : hostOf(origin);
  const host = hostOf(from);
  if (host !== undefined && host === expected?.toLowerCase()) return null;
  return `Origin is ${JSON.stringify(from)}, and this is ${JSON.stringify(expected ?? '')}`;
}

function header(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : value?.[0];
}

function hostOf(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host : undefined;
}
