import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

export interface ProjectKeys {
  readonly secret: string;
  readonly publishable: string;
  /** The older form: tokens that say a role. */
  readonly serviceRole: string;
  readonly anon: string;
  /** Of a signed-in user. */
  readonly authenticated: string;
}

export interface Gateway {
  /** What supabase-js is given. */
  readonly url: string;
  readonly keys: ProjectKeys;
  close(): Promise<void>;
}

/** What stands before PostgREST at Supabase, as far as it matters here: the path, and the newer keys. */
export async function startGateway(postgrestUrl: string, jwtSecret: string): Promise<Gateway> {
  const token = (role: string): string => sign({ role, iss: 'supabase' }, jwtSecret);
  const keys: ProjectKeys = {
    secret: 'sb_secret_of_the_tests',
    publishable: 'sb_publishable_of_the_tests',
    serviceRole: token('service_role'),
    anon: token('anon'),
    authenticated: token('authenticated'),
  };
  const tokens: Record<string, string> = {
    [keys.secret]: keys.serviceRole,
    [keys.publishable]: keys.anon,
  };

  const server = createServer((request, response) => {
    void (async () => {
      const { method = 'GET', url = '' } = request;
      const bearer = (request.headers.authorization ?? '').replace('Bearer ', '');
      const headers = new Headers({ authorization: `Bearer ${tokens[bearer] ?? bearer}` });
      for (const name of [
        'content-type',
        'accept',
        'prefer',
        'accept-profile',
        'content-profile',
      ]) {
        const value = request.headers[name];
        if (typeof value === 'string') headers.set(name, value);
      }
      const body = await buffer(request);
      const answer = await fetch(postgrestUrl + url.replace('/rest/v1', ''), {
        method,
        headers,
        ...(body.length > 0 && { body }),
      });
      response.writeHead(answer.status, {
        'content-type': answer.headers.get('content-type') ?? 'application/json',
      });
      response.end(Buffer.from(await answer.arrayBuffer()));
    })().catch((error: unknown) => {
      response.writeHead(502).end(String(error));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    keys,
    async close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

function sign(claims: object, secret: string): string {
  const now = Math.floor(Date.now() / 1_000);
  const text = [
    { alg: 'HS256', typ: 'JWT' },
    { ...claims, iat: now, exp: now + 3_600 },
  ]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.');
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
}
