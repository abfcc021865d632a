import { transactionSuite } from './suite.js';
import { kysely, kyselyControlled } from './tools/kysely.js';

transactionSuite(kysely);
transactionSuite(kyselyControlled);
