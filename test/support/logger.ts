import type { LoggerService } from '@nestjs/common';

export type LogLevel = 'log' | 'error' | 'warn' | 'debug' | 'verbose' | 'fatal';

export interface LogLine {
  level: LogLevel;
  /** The class that logs: Nest passes it as the last argument. */
  context: string | undefined;
  message: string;
  /** Whatever was logged between the two: stacks, objects. */
  rest: unknown[];
}

/** A Nest logger that prints nothing and remembers everything. */
export class RecordingLogger implements LoggerService {
  readonly lines: LogLine[] = [];

  log(message: unknown, ...rest: unknown[]): void {
    this.#record('log', message, rest);
  }

  error(message: unknown, ...rest: unknown[]): void {
    this.#record('error', message, rest);
  }

  warn(message: unknown, ...rest: unknown[]): void {
    this.#record('warn', message, rest);
  }

  debug(message: unknown, ...rest: unknown[]): void {
    this.#record('debug', message, rest);
  }

  verbose(message: unknown, ...rest: unknown[]): void {
    this.#record('verbose', message, rest);
  }

  fatal(message: unknown, ...rest: unknown[]): void {
    this.#record('fatal', message, rest);
  }

  /** The messages of these levels, or of all: `expect(logger.messages('warn')).toEqual([…])`. */
  messages(...levels: LogLevel[]): string[] {
    return this.lines
      .filter(({ level }) => levels.length === 0 || levels.includes(level))
      .map(({ message }) => message);
  }

  clear(): void {
    this.lines.length = 0;
  }

  #record(level: LogLevel, message: unknown, args: unknown[]): void {
    const last = args.at(-1);
    const context = typeof last === 'string' ? last : undefined;
    const rest = context === undefined ? args : args.slice(0, -1);
    this.lines.push({ level, context, message: textOf(message), rest });
  }
}

function textOf(message: unknown): string {
  if (typeof message === 'string') return message;
  return message instanceof Error ? message.message : JSON.stringify(message);
}
