import { transactionSuite } from './suite.js';
import { knex } from './tools/knex.js';

transactionSuite(knex);
