import { Logger } from '@nestjs/common';
import { visible, visibleLines } from '../event/visible.js';

/**
 * Nest's logger, for lines that carry event types and error texts: those come from outside, and an escape sequence or a
 * line break in them must neither reach a terminal nor look like another line of the log.
 */
export class OutboxLogger extends Logger {
  override log(message: string): void {
    super.log(visible(message));
  }

  override warn(message: string): void {
    super.warn(visible(message));
  }

  override error(message: string): void {
    super.error(visible(message));
  }

  /** Stack traces keep their lines. */
  override debug(message: string): void {
    super.debug(visibleLines(message));
  }
}
