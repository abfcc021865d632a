import { passwordsIn } from '../store/postgres/connection-string.js';

/** Takes every password this process knows of out of a message, whoever wrote it into it. */
export function redactor(
  connectionStrings: readonly (string | undefined)[],
  env: NodeJS.ProcessEnv,
): (text: string) => string {
  const secrets = [
    ...connectionStrings.flatMap((text) => (text === undefined ? [] : passwordsIn(text))),
    env['PGPASSWORD'] ?? '',
  ]
    // The longest first: one may be a part of another. One or two letters would be found in every word.
    .filter((secret) => secret.length > 2)
    .toSorted((a, b) => b.length - a.length);
  return (text) => secrets.reduce((shown, secret) => shown.replaceAll(secret, '***'), text);
}
