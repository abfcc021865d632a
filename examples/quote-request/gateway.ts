/**
 * A stand-in for the message gateway: real HTTP, a ledger of what was sent, and it can be told to
 * fail or to hang. As real ones do, it sends one message per idempotency key.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { AlimtalkMessage } from './alimtalk.client.js';

/** A message that went out, once. */
export interface SentMessage {
  readonly key: string;
  readonly message: AlimtalkMessage;
  /** Every request that carried this key and was accepted: the first, and repetitions of it. */
  readonly requests: AcceptedRequest[];
}

export interface AcceptedRequest {
  readonly at: number;
  /** What became of its answer; `lost` if the caller was gone by then. */
  answer: 'waits' | 'arrived' | 'lost';
}

/** What the gateway is told over `POST /control`. */
export interface Orders {
  /** Answer 503 so many times. */
  fail?: number;
  /** Answer 503 whenever a message is for this phone. */
  failFor?: string;
  /** Send messages, and keep the callers waiting for the answer. */
  hang?: boolean;
  /** Work again. */
  mend?: boolean;
}

export interface GatewayOptions {
  /** Default: any free one. */
  port?: number;
  /** Told what happens, in a line each. */
  say?: (line: string) => void;
}

const PHONE = /^\d{2,3}-\d{3,4}-\d{4}$/;

export class MessageGateway {
  /** By idempotency key. */
  private readonly ledger = new Map<string, SentMessage>();
  private readonly refusals: { key: string; at: number }[] = [];
  private readonly held = new Set<() => void>();
  private failures = 0;
  private readonly failing = new Set<string>();
  private hanging = false;

  private constructor(
    private readonly server: Server,
    private readonly say: (line: string) => void,
  ) {}

  static async start({ port = 0, say = () => {} }: GatewayOptions = {}): Promise<MessageGateway> {
    const server = createServer((request, response) => {
      gateway
        .serve(request, response)
        .catch((error: unknown) => answer(response, 500, String(error)));
    });
    const gateway = new MessageGateway(server, say);
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, '127.0.0.1', resolve);
    });
    return gateway;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  get sent(): readonly SentMessage[] {
    return [...this.ledger.values()];
  }

  /** What was sent about one quote request. */
  sentAbout(quoteRequestId: string): readonly SentMessage[] {
    return this.sent.filter(
      ({ message }) => message.variables['quoteRequestId'] === quoteRequestId,
    );
  }

  /** When requests with this key were refused or accepted, in order. */
  attempts(key: string): number[] {
    const refused = this.refusals.filter((refusal) => refusal.key === key);
    return [...refused, ...(this.ledger.get(key)?.requests ?? [])].map(({ at }) => at);
  }

  /** How many callers wait for an answer. */
  get waiting(): number {
    return this.held.size;
  }

  order({ fail, failFor, hang, mend }: Orders): void {
    if (mend === true) {
      this.failures = 0;
      this.failing.clear();
      this.hanging = false;
      for (const release of this.held) release();
    }
    if (fail !== undefined) this.failures = fail;
    if (failFor !== undefined) this.failing.add(failFor);
    if (hang !== undefined) this.hanging = hang;
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.server.closeAllConnections();
    await closed;
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const route = `${request.method} ${request.url}`;
    const body = request.method === 'POST' ? await readJson(request) : undefined;
    switch (route) {
      case 'GET /messages':
        return answer(response, 200, this.sent);
      case 'POST /control':
        this.order(body as Orders);
        this.say(`told ${JSON.stringify(body)}`);
        return answer(response, 200, 'as you wish');
      case 'POST /messages':
        return this.accept(
          String(request.headers['idempotency-key']),
          body as AlimtalkMessage,
          response,
        );
      default:
        return answer(response, 404, `no ${route}`);
    }
  }

  private accept(key: string, message: AlimtalkMessage, response: ServerResponse): void {
    if (!PHONE.test(message.to)) {
      this.say(`400 for "${message.to}", which is no phone number`);
      return answer(response, 400, 'no phone number');
    }
    if (this.failures > 0 || this.failing.has(message.to)) {
      if (this.failures > 0) this.failures -= 1;
      this.refusals.push({ key, at: performance.now() });
      this.say(`503 for ${message.to}, key ${key}`);
      return answer(response, 503, 'service unavailable');
    }

    const request: AcceptedRequest = { at: performance.now(), answer: 'waits' };
    const known = this.ledger.get(key);
    if (known === undefined) this.ledger.set(key, { key, message, requests: [request] });
    else known.requests.push(request);
    this.say(
      known === undefined
        ? `sent to ${message.to}, key ${key}`
        : `key ${key} again: the same message, not sent a second time`,
    );

    response.once('close', () => {
      request.answer = response.writableFinished ? 'arrived' : 'lost';
      this.held.delete(release);
    });
    const release = (): void => answer(response, 200, { key, duplicate: known !== undefined });
    if (!this.hanging) return release();
    this.held.add(release);
    this.say('and hangs: the caller waits for the answer');
  }
}

function answer(response: ServerResponse, status: number, body: string | object): void {
  const [type, text] =
    typeof body === 'string'
      ? ['text/plain', body]
      : ['application/json', `${JSON.stringify(body, undefined, 2)}\n`];
  response.writeHead(status, { 'content-type': type }).end(text);
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) text += chunk as string;
  return JSON.parse(text === '' ? '{}' : text);
}
