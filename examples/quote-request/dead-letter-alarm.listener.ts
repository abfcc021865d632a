import { Injectable, Logger } from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import { OUTBOX_DEAD_LETTER, type DeadLetterNotice } from 'nestjs-outbox-relay';

/** An event was set aside: somebody has to look. A real one would write to a channel or a pager. */
@Injectable()
export class DeadLetterAlarmListener {
  private readonly logger = new Logger('Alarm');

  @OnEvent(OUTBOX_DEAD_LETTER)
  alarm({ id, eventType, retryCount }: DeadLetterNotice): void {
    this.logger.error(
      `${eventType} ${id} was given up (failed attempts: ${retryCount}): mend the cause, then POST /outbox/dead-letters/${id}/redrive`,
    );
  }
}
