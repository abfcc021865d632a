import { DataSource, type EntityManager, EntitySchema, type QueryRunner } from 'typeorm';
import type { OpenTool, Tool } from './tool.js';

export const Quote = new EntitySchema<{ id: number }>({
  name: 'quotes',
  columns: { id: { type: 'integer', primary: true } },
});

const WHAT_TO_PASS =
  "pass the manager that TypeORM's dataSource.transaction(async (manager) => …) hands you, or a query runner after startTransaction()";

export const typeormManager: Tool = {
  name: 'TypeORM, an EntityManager',
  whatToPass: WHAT_TO_PASS,
  tellsItsEnd: true,
  async open({ connectionString }) {
    const dataSource = await connect(connectionString);
    return {
      transaction: (work) => dataSource.transaction((manager) => work(manager)),
      nested: (tx, work) => (tx as EntityManager).transaction((manager) => work(manager)),
      insertQuote: (tx, id) => (tx as EntityManager).insert(Quote, { id }),
      fail: (tx) => (tx as EntityManager).query('SELECT 1/0'),
      ...means(dataSource),
    };
  },
};

export const typeormQueryRunner: Tool = {
  name: 'TypeORM, a QueryRunner',
  whatToPass: WHAT_TO_PASS,
  tellsItsEnd: true,
  async open({ connectionString }) {
    const dataSource = await connect(connectionString);
    const within = async <Result>(
      runner: QueryRunner,
      work: (tx: QueryRunner) => Promise<Result>,
    ): Promise<Result> => {
      await runner.startTransaction();
      try {
        const result = await work(runner);
        await runner.commitTransaction();
        return result;
      } catch (error) {
        await runner.rollbackTransaction();
        throw error;
      }
    };
    return {
      async transaction(work) {
        const runner = dataSource.createQueryRunner();
        try {
          return await within(runner, work);
        } finally {
          await runner.release();
        }
      },
      nested: (tx, work) => within(tx as QueryRunner, work),
      insertQuote: (tx, id) => (tx as QueryRunner).manager.insert(Quote, { id }),
      fail: (tx) => (tx as QueryRunner).query('SELECT 1/0'),
      ...means(dataSource),
    };
  },
};

async function connect(url: string): Promise<DataSource> {
  return new DataSource({ type: 'postgres', url, entities: [Quote] }).initialize();
}

function means(dataSource: DataSource): Pick<OpenTool, 'mistakes' | 'close'> {
  return {
    mistakes: [
      [
        'the DataSource',
        () => dataSource,
        "tx is TypeORM's DataSource, whose every query may take another connection",
      ],
      [
        'DataSource.manager',
        () => dataSource.manager,
        "tx is TypeORM's EntityManager outside a transaction",
      ],
      [
        'a query runner on which nothing was begun',
        () => dataSource.createQueryRunner(),
        'tx has no open transaction',
      ],
    ],
    close: () => dataSource.destroy(),
  };
}
