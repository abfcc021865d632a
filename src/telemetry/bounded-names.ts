/** What the semantic conventions call everything that has no name of its own. */
export const OTHER = '_OTHER';

/**
 * Lets so many distinct names through and no more: each value of an attribute is a time series of its own, and these
 * come from data.
 */
export class BoundedNames {
  private readonly known = new Set<string>();

  constructor(private readonly limit: number) {}

  of(name: string): string {
    if (this.known.has(name)) return name;
    if (this.known.size >= this.limit) return OTHER;
    this.known.add(name);
    return name;
  }
}
