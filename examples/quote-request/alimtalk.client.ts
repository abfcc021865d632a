import { Injectable } from '@nestjs/common';
import { NonRetryableError } from 'nestjs-outbox-relay';
import { Settings } from './settings.js';

export interface AlimtalkMessage {
  to: string;
  templateCode: string;
  variables: Record<string, string>;
}

export interface SendOptions {
  /** The gateway sends one message per key, however often it is asked to. */
  idempotencyKey: string;
  /** Gives up the request when it is aborted. */
  signal?: AbortSignal;
}

/** Talks to the message gateway. */
@Injectable()
export class AlimtalkClient {
  constructor(private readonly settings: Settings) {}

  async send(message: AlimtalkMessage, { idempotencyKey, signal }: SendOptions): Promise<void> {
    const response = await fetch(`${this.settings.gatewayUrl}/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': idempotencyKey },
      body: JSON.stringify(message),
      signal: signal ?? null,
    });
    if (response.ok) return;

    const reason = `the gateway answered ${response.status}: ${await response.text()}`;
    // What is wrong with the message itself will be wrong next time too.
    if (response.status === 400) throw new NonRetryableError(reason);
    throw new Error(reason);
  }
}
