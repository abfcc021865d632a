import type { SqlExecutor } from '../store/outbox-store.js';
import { onlyWhileOpen } from './only-while-open.js';
import {
  hasMethods,
  neverTold,
  notOpen,
  refusal,
  type TransactionTool,
} from './transaction-tool.js';

/** The `tx` of `prisma.$transaction(async (tx) => …)`. */
export interface PrismaTransaction {
  $queryRawUnsafe(text: string, ...values: never[]): PromiseLike<unknown>;
  /** What the client has and its transactions have not. */
  readonly $connect?: never;
}

export const prisma: TransactionTool = {
  whatToPass: "the tx that Prisma's prisma.$transaction(async (tx) => …) hands you",

  recognises: (candidate) => hasMethods(candidate, '$queryRawUnsafe'),

  open(candidate) {
    if (hasMethods(candidate, '$connect'))
      throw refusal(
        'is the Prisma client itself, whose every query may take another connection',
        prisma,
      );
    const executor = executorOf(candidate as unknown as PrismaTransaction);
    return { executor: onlyWhileOpen(executor, () => notOpen(prisma)), onEnd: neverTold };
  },
};

function executorOf(tx: PrismaTransaction): SqlExecutor {
  return {
    async query(text, values) {
      try {
        return { rows: (await tx.$queryRawUnsafe(text, ...(values as never[]))) as unknown[] };
      } catch (error) {
        if (saysItHasEnded(error)) throw notOpen(prisma, error);
        throw error;
      }
    },
  };
}

/** P2028: committed, rolled back, or past the timeout that Prisma sets its transactions. */
function saysItHasEnded(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'P2028';
}
