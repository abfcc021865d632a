import { assertKnownKeys } from '../event/known-keys.js';
import { invalid, OutboxError } from '../event/outbox-error.js';
import { shown } from '../event/shown.js';
import type { DashboardCredentials } from './credentials.js';
import { isLanguage, type DashboardLanguage } from './language.js';
import type { DashboardMask } from './mask.js';

/** How the dashboard looks, and what it shows. */
export interface DashboardAppearance {
  /** Shown in the head of each page and in the tab. Default `Outbox`. */
  readonly title?: string | undefined;
  /** Fields of payload and metadata that are shown as `•••`. Default: none. Error texts are shown as they are. */
  readonly mask?: DashboardMask | undefined;
  /** Of the times shown, e.g. `Asia/Seoul`. Default: the viewer's own (UTC without JavaScript). */
  readonly timeZone?: string | undefined;
  /** Default: what the browser asks for. The page has a switch. */
  readonly language?: DashboardLanguage | undefined;
  /** Where browsers see the dashboard, e.g. `https://admin.example.com`: for a proxy that rewrites `Host`. */
  readonly origin?: string | undefined;
}

/** What may also come late, from `forRootAsync`. */
export interface DashboardSettings extends DashboardAppearance {
  /** HTTP Basic authentication. Either this or `guard`. */
  readonly credentials?: readonly DashboardCredentials[] | undefined;
}

/** Complete and checked. */
export interface ResolvedSettings {
  readonly title: string;
  readonly mask: DashboardMask | undefined;
  readonly timeZone: string | undefined;
  readonly language: DashboardLanguage | undefined;
  readonly origin: string | undefined;
  /** `null`: the application's guard decides. */
  readonly credentials: readonly DashboardCredentials[] | null;
}

const APPEARANCE_KEYS = ['title', 'mask', 'timeZone', 'language', 'origin'];
export const SETTINGS_KEYS: readonly string[] = ['credentials', ...APPEARANCE_KEYS];
export const PLACE_KEYS: readonly string[] = ['path', 'guard', 'actGuard', 'imports', 'decorators'];
const SHORTEST_PASSWORD = 12;

/**
 * @param guarded whether a guard of the application was given
 * @throws OutboxError `SETUP` if nobody says who may come in, `INVALID_ARGUMENT` for a setting that cannot be meant
 */
export function resolveSettings(given: DashboardSettings, guarded: boolean): ResolvedSettings {
  if (!isObject(given)) {
    throw invalid(`dashboard settings must be an object, got ${shown(given)}`);
  }
  assertKnownKeys('', given, SETTINGS_KEYS);
  const { title = 'Outbox', mask, timeZone, language, origin, credentials } = given;
  if (typeof title !== 'string' || title.trim() === '') {
    throw invalid(`title must be a text such as 'Orders outbox', got ${shown(title)}`);
  }
  assertMask(mask);
  if (timeZone !== undefined && !isTimeZone(timeZone)) {
    throw invalid(`timeZone must be a time zone such as 'Asia/Seoul', got ${shown(timeZone)}`);
  }
  if (language !== undefined && !isLanguage(language)) {
    throw invalid(`language must be 'en' or 'ko', got ${shown(language)}`);
  }
  if (origin !== undefined && !isOrigin(origin)) {
    throw invalid(
      `origin must be scheme and host such as 'https://admin.example.com', got ${shown(origin)}`,
    );
  }
  assertSomebody(credentials, guarded);
  return { title, mask, timeZone, language, origin, credentials: credentials ?? null };
}

/** @throws OutboxError `INVALID_ARGUMENT` */
export function resolvePath(path: unknown = 'outbox'): string {
  if (typeof path !== 'string' || !/^[\w\-./~]*$/.test(path)) {
    throw invalid(
      `path must be a plain path such as 'outbox' or 'admin/outbox', without wildcards, got ${shown(path)}`,
    );
  }
  return path;
}

function assertSomebody(
  credentials: readonly DashboardCredentials[] | undefined,
  guarded: boolean,
): void {
  if (credentials === undefined) {
    if (guarded) return;
    throw new OutboxError(
      'SETUP',
      'the dashboard is closed until you say who may come in: give credentials: [{ username, password, rights: ' +
        "'read' | 'act' }], or guard: a guard of your application (and actGuard: who may redrive and discard)",
    );
  }
  if (guarded) {
    throw invalid('credentials and guard exclude each other: give one of them');
  }
  if (!Array.isArray(credentials) || credentials.length === 0) {
    throw invalid(
      "credentials must be a list of { username, password, rights: 'read' | 'act' } with somebody in it",
    );
  }
  const names = new Set<unknown>();
  for (const [i, each] of (credentials as readonly DashboardCredentials[]).entries()) {
    assertCredentials(each, `credentials[${i}]`);
    if (names.has(each.username)) {
      throw invalid(`credentials[${i}].username ${shown(each.username)} is there twice`);
    }
    names.add(each.username);
  }
}

// Never with the password in the message: it goes to a log.
function assertCredentials(given: DashboardCredentials, path: string): void {
  if (!isObject(given)) {
    throw invalid(`${path} must be { username, password, rights }, got ${shown(given)}`);
  }
  assertKnownKeys(`${path}.`, given, ['username', 'password', 'rights']);
  const { username, password, rights } = given as { [Key in keyof DashboardCredentials]: unknown };
  if (typeof username !== 'string' || username === '' || username.includes(':')) {
    throw invalid(`${path}.username must be a name without a colon, got ${shown(username)}`);
  }
  if (typeof password !== 'string' || [...password].length < SHORTEST_PASSWORD) {
    const what =
      typeof password === 'string' ? `${[...password].length} characters` : typeof password;
    throw invalid(
      `${path}.password must have ${SHORTEST_PASSWORD} characters or more, got ${what}: take one from your ` +
        'environment, e.g. made by openssl rand -base64 24',
    );
  }
  if (rights !== 'read' && rights !== 'act') {
    throw invalid(`${path}.rights must be 'read' or 'act', got ${shown(rights)}`);
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function assertMask(mask: unknown): void {
  if (mask === undefined || typeof mask === 'function') return;
  const isName = (name: unknown): boolean => typeof name === 'string' && name.trim() !== '';
  if (Array.isArray(mask) && mask.every(isName)) return;
  throw invalid(
    `mask must be a list of field names such as ['password', 'customer.phone'], or a function (path, value) => boolean, got ${shown(mask)}`,
  );
}

function isTimeZone(timeZone: unknown): boolean {
  try {
    return Boolean(new Intl.DateTimeFormat('en', { timeZone: timeZone as string }));
  } catch {
    return false;
  }
}

function isOrigin(origin: unknown): boolean {
  return typeof origin === 'string' && URL.canParse(origin) && new URL(origin).origin === origin;
}
