import { prismaClient, type PrismaTransactionClient } from '../prisma/client.js';
import type { Tool } from './tool.js';

export const prisma: Tool = {
  name: 'Prisma',
  whatToPass: "pass the tx that Prisma's prisma.$transaction(async (tx) => …) hands you",
  tellsItsEnd: false,
  async open({ connectionString }) {
    const client = await prismaClient(connectionString);
    return {
      transaction: (work) => client.$transaction((tx) => work(tx)),
      nested: (tx, work) => (tx as PrismaTransactionClient).$transaction((nested) => work(nested)),
      insertQuote: (tx, id) => (tx as PrismaTransactionClient).quote.create({ data: { id } }),
      fail: (tx) => (tx as PrismaTransactionClient).$queryRawUnsafe('SELECT 1/0'),
      mistakes: [
        [
          'the PrismaClient itself',
          () => client,
          'tx is the Prisma client itself, whose every query may take another connection',
        ],
        [
          'an extended PrismaClient',
          () => client.$extends({ name: 'extended' }),
          'tx is the Prisma client itself, whose every query may take another connection',
        ],
      ],
      close: () => client.$disconnect(),
    };
  },
};
