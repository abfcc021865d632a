import { transactionSuite } from './suite.js';
import { prisma } from './tools/prisma.js';

transactionSuite(prisma);
