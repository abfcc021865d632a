import postgres from 'postgres';
import type { OpenTool, Tool } from './tool.js';

const WHAT_TO_PASS = "pass the sql that postgres.js's sql.begin(async (sql) => …) hands you";

export const postgresJs: Tool = {
  name: 'postgres.js',
  whatToPass: WHAT_TO_PASS,
  tellsItsEnd: false,
  async open({ connectionString }) {
    const sql = postgres(connectionString);
    return {
      ...means(sql),
      transaction: async (work) => (await sql.begin((tx) => work(tx))) as never,
      nested: async (tx, work) =>
        (await (tx as postgres.TransactionSql).savepoint((nested) => work(nested))) as never,
    };
  },
};

export const postgresJsReserved: Tool = {
  name: 'postgres.js, a reserved connection',
  whatToPass: WHAT_TO_PASS,
  tellsItsEnd: false,
  async open({ connectionString }) {
    const sql = postgres(connectionString);
    return {
      ...means(sql),
      async transaction(work) {
        const reserved = await sql.reserve();
        try {
          await reserved`begin`;
          const result = await work(reserved);
          await reserved`commit`;
          return result;
        } catch (error) {
          await reserved`rollback`;
          throw error;
        } finally {
          reserved.release();
        }
      },
      async nested(tx, work) {
        const reserved = tx as postgres.ReservedSql;
        await reserved`savepoint nested`;
        try {
          const result = await work(reserved);
          await reserved`release savepoint nested`;
          return result;
        } catch (error) {
          await reserved`rollback to savepoint nested`;
          throw error;
        }
      },
    };
  },
};

function means(sql: postgres.Sql): Omit<OpenTool, 'transaction' | 'nested'> {
  return {
    insertQuote: async (tx, id) =>
      (tx as postgres.TransactionSql)`INSERT INTO quotes VALUES (${id})`,
    fail: async (tx) => (tx as postgres.TransactionSql)`SELECT 1/0`,
    mistakes: [
      [
        'sql itself',
        () => sql,
        'tx is postgres.js itself, whose every query may take another connection',
      ],
    ],
    close: () => sql.end(),
  };
}
