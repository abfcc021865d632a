import { transactionSuite } from './suite.js';
import { postgresJs, postgresJsReserved } from './tools/postgres-js.js';

transactionSuite(postgresJs);
transactionSuite(postgresJsReserved);
