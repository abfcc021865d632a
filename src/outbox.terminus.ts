import { Injectable } from '@nestjs/common';
import { HealthIndicatorService, type HealthIndicatorResult } from '@nestjs/terminus';
import { OutboxHealth, type HealthThresholds } from './monitor/outbox.health.js';

/**
 * The outbox in a Terminus health check.
 *
 * ```ts
 * @Get() @HealthCheck()
 * check() {
 *   return this.health.check([() => this.outbox.isHealthy('outbox', { oldestDueAgeMs: 60_000 })]);
 * }
 * ```
 */
@Injectable()
export class OutboxHealthIndicator {
  constructor(
    private readonly health: OutboxHealth,
    private readonly indicators: HealthIndicatorService,
  ) {}

  /** @throws OutboxError `INVALID_ARGUMENT` for a threshold that cannot be meant */
  async isHealthy<Key extends string = 'outbox'>(
    key: Key = 'outbox' as Key,
    thresholds: HealthThresholds = {},
  ): Promise<HealthIndicatorResult<Key>> {
    const { status, ...details } = await this.health.check(thresholds);
    const indicator = this.indicators.check(key);
    return status === 'up' ? indicator.up(details) : indicator.down(details);
  }
}

export type { HealthThresholds } from './monitor/outbox.health.js';
