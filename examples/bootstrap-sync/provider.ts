import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ProviderRecord {
  readonly id: string;
  readonly name: string | null;
  readonly email: string;
  readonly phone: string;
  readonly updatedAt: string;
}

/** What a tenant's records are fetched from. It can be told how many there are, to fail, and to serve a broken one. */
export class RecordsProvider {
  /** How often it was asked. */
  requests = 0;
  isDown = false;
  private readonly tenants = new Map<string, { records: number; poisoned: boolean }>();

  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  static async start(): Promise<RecordsProvider> {
    const server = createServer((request, response) => {
      const tenant = new URL(request.url ?? '/', 'http://provider').pathname.slice(1);
      response.statusCode = provider.isDown ? 503 : 200;
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(provider.answer(tenant)));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const provider = new RecordsProvider(server, `http://127.0.0.1:${port}`);
    return provider;
  }

  has(tenant: string, records: number, { poisoned = false } = {}): void {
    this.tenants.set(tenant, { records, poisoned });
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private answer(tenant: string): ProviderRecord[] {
    this.requests++;
    const { records, poisoned } = this.tenants.get(tenant) ?? { records: 0, poisoned: false };
    return Array.from({ length: records }, (_, n) => ({
      id: `${tenant}-${n}`,
      // A name that the table does not allow: the same failure each time.
      name: poisoned && n === records - 1 ? null : `Record ${n}`,
      email: `${n}@${tenant}.example`,
      phone: `+82-2-${n}`,
      updatedAt: '2026-01-01T00:00:00Z',
    }));
  }
}
