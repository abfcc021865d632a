/** Where the relay says what happens: Nest's `Logger` fits. */
export interface Log {
  debug(message: string): void;
  log(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}
