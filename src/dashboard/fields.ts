/** What came with a request, as text: of the query, or of a form. */
export class Fields {
  private constructor(private readonly values: ReadonlyMap<string, readonly string[]>) {}

  /** @param url of the request */
  static ofQuery(url: string): Fields {
    const values = new Map<string, string[]>();
    const { searchParams } = new URL(url, 'http://dashboard');
    for (const key of searchParams.keys()) values.set(key, searchParams.getAll(key));
    return new Fields(values);
  }

  /** @param body as the application's parser made it: whatever it looks like, only text is taken */
  static ofBody(body: unknown): Fields {
    const values = new Map<string, string[]>();
    if (typeof body !== 'object' || body === null) return new Fields(values);
    for (const [key, value] of Object.entries(body)) values.set(key, textsOf(value));
    return new Fields(values);
  }

  /** The first value; `''` if there is none. */
  text(name: string): string {
    return this.values.get(name)?.[0]?.trim() ?? '';
  }

  all(name: string): string[] {
    return (this.values.get(name) ?? []).filter((value) => value !== '');
  }

  /** A whole number from 0 on. */
  number(name: string, otherwise: number): number {
    const text = this.text(name);
    return /^\d{1,12}$/.test(text) ? Number(text) : otherwise;
  }
}

function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  // Some parsers make an object of a long list.
  return Object.values(value).filter((item): item is string => typeof item === 'string');
}
