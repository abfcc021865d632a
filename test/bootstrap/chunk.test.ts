import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { chunk, classifyFailure } from '../../src/index.js';
import { createDatabase, type TestDatabase } from '../support/database.js';

describe('chunk', () => {
  it('splits by PostgreSQL’s 65,535 parameters: 10,922 rows of six are one part, 10,923 are two', () => {
    const rows = Array.from({ length: 10_923 }, (_, n) => n);
    expect(chunk(rows.slice(1), 6).map((part) => part.length)).toEqual([10_922]);
    expect(chunk(rows, 6).map((part) => part.length)).toEqual([10_922, 1]);
    expect(chunk(rows, 6, 5_000).map((part) => part.length)).toEqual([5_000, 5_000, 923]);
    expect(chunk([], 6)).toEqual([]);
    expect(chunk(rows.slice(0, 2), 65_535)).toEqual([[0], [1]]);
  });

  it('loses nothing, keeps the order, and every part fits', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 3_000 }),
        fc.integer({ min: 1, max: 65_535 }),
        fc.integer({ min: 1, max: 65_535 }),
        (count, parameters, maxRows) => {
          const rows = Array.from({ length: count }, (_, n) => n);
          const parts = chunk(rows, parameters, maxRows);
          expect(parts.flat()).toEqual(rows);
          for (const part of parts) {
            expect(part.length).toBeGreaterThan(0);
            expect(part.length * parameters).toBeLessThanOrEqual(65_535);
            expect(part.length).toBeLessThanOrEqual(maxRows);
          }
        },
      ),
    );
  });

  it.each([[0], [-1], [1.5], [65_536], [Number.NaN], ['6']])('refuses %p parameters', (count) => {
    expect(() => chunk([], count as number)).toThrow('parametersPerRow must be a whole number');
    expect(() => chunk([], 1, count as number)).toThrow('maxRows must be a whole number');
    expect(() => chunk('rows' as never, 1)).toThrow('rows must be an array');
  });

  describe.each([14, 18] as const)('against PostgreSQL %i', (major) => {
    let database: TestDatabase;
    beforeAll(async () => {
      database = await createDatabase(major);
      await database.query(
        'CREATE TABLE record (id int PRIMARY KEY, a int, b int, c int, d int, e int)',
      );
    });
    afterAll(() => database.drop());

    const upsert = (ids: readonly number[]): Promise<unknown> =>
      database.query(
        `INSERT INTO record VALUES ${ids
          .map((_, row) => `(${[1, 2, 3, 4, 5, 6].map((n) => `$${row * 6 + n}`).join(',')})`)
          .join(',')} ON CONFLICT (id) DO UPDATE SET a = excluded.a`,
        ids.flatMap((id) => [id, 1, 2, 3, 4, 5]),
      );
    const ids = Array.from({ length: 10_923 }, (_, id) => id);

    it('10,922 rows of six pass in one statement, 10,923 do not, and that is deterministic', async () => {
      await upsert(ids.slice(1));
      const error = await upsert(ids).catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(Error);
      expect(classifyFailure(error)).toBe('deterministic');
    });

    it('in parts they pass, and again', async () => {
      for (let time = 0; time < 2; time++) for (const part of chunk(ids, 6)) await upsert(part);
      expect(await database.query('SELECT count(*)::int AS n FROM record')).toEqual([
        { n: 10_923 },
      ]);
    });
  });
});
