export const EXPECTED_TABLES: readonly string[] = [];
export const EXPECTED_INDEXES: Readonly<Record<string, string>> = {};
export const EXPECTED_CONSTRAINTS: Readonly<
  Record<string, { readonly table: string; readonly definition: string }>
> = {};
export const EXPECTED_FUNCTIONS: Readonly<Record<string, string>> = {};
