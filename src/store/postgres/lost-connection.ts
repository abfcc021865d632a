// Class 08 (connection exception), the server shutting down, and what the socket says.
const CODES = /^(08\w{3}|57P0[123]|ECONNRESET|EPIPE|ECONNREFUSED)$/;

// node-postgres gives these no code.
const MESSAGES = /^Connection terminated|^Client has encountered a connection error/;

/** Whether a statement failed because its connection broke: it may have been carried out or not. */
export function isLostConnection(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false;
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (typeof code === 'string') return CODES.test(code);
  return typeof message === 'string' && MESSAGES.test(message);
}
