const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Whether something is the id of an event: a UUID, of whatever version. */
export function isEventId(id: unknown): id is string {
  return typeof id === 'string' && UUID.test(id);
}
