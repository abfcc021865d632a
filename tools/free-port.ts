import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * A free port on loopback, from below the range that systems hand out to outgoing connections
 * (Linux: from 32768). Tests stop a server and bring it back on the same port; inside that range
 * the port of a stopped server may be given to a client meanwhile, and a client that keeps
 * reconnecting to a stopped server may even end up connected to itself.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 50; attempt++) {
    const port = randomInt(15_000, 32_000);
    if (await isFree(port)) return port;
  }
  throw new Error('No free port found between 15000 and 32000 on 127.0.0.1 after 50 attempts.');
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
