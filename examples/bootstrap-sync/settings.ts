/** Where things are; the demo starts them. */
export abstract class Settings {
  abstract readonly databaseUrl: string;
  abstract readonly queueUrl: string;
  abstract readonly providerUrl: string;
}
