import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';

/** Everything that comes from the environment; .env.example explains each variable. */
@Injectable()
export class Settings {
  readonly port = wholeNumber('PORT', 3000);
  readonly databaseUrl = required('DATABASE_URL');
  readonly gatewayUrl = required('GATEWAY_URL');
  /** Without one the dashboard is there and nobody knows its password. */
  readonly dashboardPassword =
    process.env['OUTBOX_DASHBOARD_PASSWORD'] || randomBytes(24).toString('base64url');
  readonly relay = (process.env['OUTBOX_RELAY'] || 'on') !== 'off';
  readonly maxRetries = wholeNumber('OUTBOX_MAX_RETRIES', 5);
  readonly backoffUnitMs = wholeNumber('OUTBOX_BACKOFF_UNIT_MS', 60_000);
  readonly leaseMs = wholeNumber('OUTBOX_LEASE_MS', 60_000);
  readonly listenerTimeoutMs = wholeNumber('OUTBOX_LISTENER_TIMEOUT_MS', 30_000);
}

/** The wait after failure 1, 2, 3, …: 2, 4, 8, … units. */
export function backoffMs(retryCount: number, unitMs: number): number {
  return 2 ** retryCount * unitMs;
}

export function wholeNumber(name: string, otherwise: number): number {
  const text = process.env[name];
  if (text === undefined || text === '') return otherwise;
  if (/^\d+$/.test(text)) return Number(text);
  throw new Error(`${name} must be a whole number, got "${text}"`);
}

function required(name: string): string {
  const text = process.env[name];
  if (text !== undefined && text !== '') return text;
  throw new Error(`${name} is not set: see .env.example`);
}
