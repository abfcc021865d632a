import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** `read`: may look. `act`: may redrive, discard and reopen as well. */
export type DashboardRights = 'read' | 'act';

/** Somebody who may come in by HTTP Basic authentication. */
export interface DashboardCredentials {
  /** Not empty, without a colon: HTTP Basic ends the name there. */
  readonly username: string;
  /** 12 characters or more, from the environment and not from the code; `undefined` is refused at the start. */
  readonly password: string | undefined;
  readonly rights: DashboardRights;
}

// What is compared are digests under a key of this process: of the same length whatever was sent, and no secrets.
const KEY = randomBytes(32);

/**
 * Whose `Authorization` header this is. Looks at all credentials, and takes as long whether a name is known or not.
 * @returns `null` if it is nobody's
 */
export function rightsByCredentials(
  authorization: string | undefined,
  known: readonly DashboardCredentials[],
): DashboardRights | null {
  const [, encoded = ''] = /^Basic +([\w+/=-]+) *$/i.exec(authorization ?? '') ?? [];
  const given = digest(Buffer.from(encoded, 'base64').toString());
  let rights: DashboardRights | null = null;
  for (const { username, password, rights: theirs } of known) {
    if (timingSafeEqual(given, digest(`${username}:${password}`))) rights = theirs;
  }
  return rights;
}

function digest(text: string): Buffer {
  return createHmac('sha256', KEY).update(text).digest();
}
