/** What a route answers, whatever the HTTP server. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Nothing but what this package serves itself; no script and no style within a page. */
export const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

const ALWAYS = {
  'Content-Security-Policy': CONTENT_SECURITY_POLICY,
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  // Filters and ids are in the address: no other site needs to know. `no-referrer` would take the Origin of a form along.
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'X-Robots-Tag': 'noindex',
};
const NOT_KEPT = { ...ALWAYS, 'Cache-Control': 'no-store', Vary: 'Accept-Language, Accept' };

export function htmlReply(body: string, status = 200): Reply {
  return { status, headers: { ...NOT_KEPT, 'Content-Type': 'text/html; charset=utf-8' }, body };
}

export function jsonReply(value: unknown, status = 200): Reply {
  const headers = { ...NOT_KEPT, 'Content-Type': 'application/json; charset=utf-8' };
  return { status, headers, body: JSON.stringify(value) };
}

/** To a page of the dashboard, after a change. @param location relative to the request's */
export function seeOther(location: string): Reply {
  return { status: 303, headers: { ...NOT_KEPT, Location: location }, body: '' };
}

/** A file whose name changes with its content. */
export function assetReply(type: string, body: string): Reply {
  const kept = { 'Cache-Control': 'private, max-age=31536000, immutable' };
  return { status: 200, headers: { ...ALWAYS, ...kept, 'Content-Type': type }, body };
}

export function withHeaders(reply: Reply, headers: Readonly<Record<string, string>>): Reply {
  return { ...reply, headers: { ...reply.headers, ...headers } };
}
