import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { freePort } from '../../tools/free-port.js';
import { opened } from './leaks.js';

export interface TcpProxy extends AsyncDisposable {
  readonly port: number;
  /** The database's own, but through the proxy. */
  readonly connectionString: string;
  /** Clients connected now. */
  readonly connections: number;
  /** New connections are refused, as by a server that is down. Those that exist stay. */
  refuse(): void;
  /** Resets every connection that exists. */
  dropAll(): void;
  /**
   * The network swallows everything: connections, old and new, stay open and nothing arrives in
   * either direction, not even that the other side has closed.
   */
  halfOpen(): void;
  /** Works again. Connections whose bytes were swallowed are reset, as no real one could go on. */
  restore(): Promise<void>;
  close(): Promise<void>;
}

interface Link {
  client: Socket;
  upstream: Socket;
  /** It lost bytes, so it can only be reset. */
  broken: boolean;
}

/** A proxy on loopback in front of a database, for everything that a network does to it. */
export async function startTcpProxy(connectionString: string): Promise<TcpProxy> {
  const target = new URL(connectionString);
  const port = await freePort();
  const links = new Set<Link>();
  let swallows = false;

  const server = createServer((client) => {
    const upstream = connect(Number(target.port || 5432), target.hostname);
    const link: Link = { client, upstream, broken: swallows };
    links.add(link);
    join(client, upstream);
    join(upstream, client);

    function join(from: Socket, to: Socket): void {
      from.setNoDelay(true);
      from.on('data', (bytes) => {
        if (swallows) link.broken = true;
        else if (!link.broken) to.write(bytes);
      });
      from.on('end', () => {
        if (!swallows && !link.broken) to.end();
      });
      from.on('error', () => {}); // 'close' follows
      from.on('close', (hadError) => {
        if (swallows) link.broken = true;
        else if (hadError || link.broken) reset(link);
        else if (to.destroyed) links.delete(link);
        else to.end();
      });
    }
  });

  function reset(link: Link): void {
    links.delete(link);
    if (!link.client.destroyed) link.client.resetAndDestroy();
    if (!link.upstream.destroyed) link.upstream.resetAndDestroy();
  }

  const through = new URL(connectionString);
  through.hostname = '127.0.0.1';
  through.port = String(port);

  const proxy: TcpProxy = {
    port,
    connectionString: through.href,
    get connections() {
      return links.size;
    },
    refuse() {
      server.close(); // stops listening at once; only its callback would wait for connections
    },
    dropAll() {
      for (const link of links) reset(link);
    },
    halfOpen() {
      swallows = true;
    },
    async restore() {
      swallows = false;
      for (const link of links) if (link.broken) reset(link);
      if (!server.listening) await listen(server, port);
    },
    async close() {
      closed();
      proxy.dropAll();
      server.close();
    },
    [Symbol.asyncDispose]: () => proxy.close(),
  };

  await listen(server, port);
  const closed = opened({
    scope: 'file',
    describe: () => `TCP proxy on port ${port} with ${links.size} connection(s)`,
    end: () => proxy.close(),
  });
  return proxy;
}

async function listen(server: Server, port: number): Promise<void> {
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
}
