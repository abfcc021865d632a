import { transactionSuite } from './suite.js';
import { olderPgClient, pgClient } from './tools/pg.js';

transactionSuite(pgClient(18));
transactionSuite(pgClient(14));
transactionSuite(olderPgClient);
